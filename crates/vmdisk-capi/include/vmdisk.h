/* vmdisk: reads, checks, generates and explains the disk configuration of QEMU/libvirt guests.
 *
 * Every text is UTF-8 and ends with a zero byte. Results are JSON in the shapes of `vmdisk print schema`; a call that fails returns
 * an object with the member "error": {"error": {"message": ..., "start": ..., "end": ..., "help": ...}}. All functions may be
 * called from several threads at once, also with the same host. None ends the program, opens a file or prints. */
#ifndef VMDISK_H
#define VMDISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The facts of a host (`vmdisk facts`), indexed. */
typedef struct VmdiskHost VmdiskHost;

/* The version of this interface: 1 for libvmdisk.so.1. */
uint32_t vmdisk_abi_version(void);

/* The version of vmdisk; not to be freed. */
const char *vmdisk_version(void);

/* A host by its facts in JSON or YAML. NULL if they cannot be read; `*error` is then the error, to be freed with vmdisk_free,
 * otherwise NULL. `error` may be NULL. */
VmdiskHost *vmdisk_host_parse(const char *facts, char **error);

/* Frees a host; NULL is allowed. */
void vmdisk_host_free(VmdiskHost *host);

/* Frees a text that one of these functions returned; NULL is allowed. */
void vmdisk_free(char *text);

#ifdef __wasm__
/* Room for a text of this many bytes, and the zero byte after it, which is there; to be freed with vmdisk_free. Callers of
 * WebAssembly have no other way to pass a text. */
char *vmdisk_alloc(size_t bytes);
#endif

/* All of the following read `text`: libvirt's XML, a QEMU command line or a spec. `host` is the host that runs the guest, or
 * NULL. `options` is NULL or an object, each member optional. The result is to be freed with vmdisk_free.
 *   "name": "web1.xml"                      the name of the text in reports
 *   "target": "qemu=9.2,libvirt=10.0"       the versions to check for
 *   "policy": "multi-tenant"                who shares the host: or "single-tenant", "lab"
 *   "unsafe_fixes": false                   apply fixes with a trade-off, too
 *   "config": "[rules]\n..."                the text of a vmdisk.toml, in whose directory the name begins
 *   "rules": {"cache-unsafe": "off"}        levels of rules and groups: "off", "on" or a severity
 *   "select", "extend_select", "ignore"     lists of rules and groups
 *   "min_severity": "warning"               the least severity to report
 *   "fleet": {"kvm1": "{facts}"}            the facts of the hosts that the guest may run on, in place of `host`
 *   "existing": "<domain ..."               for vmdisk_plan, the guest that is there, in libvirt's XML
 *   "brief": false                          leave out the places that rules could not look at */

/* The report of `vmdisk lint --format json`. Rules about the other guests of the host are among those not checked. */
char *vmdisk_lint(const char *text, const VmdiskHost *host, const char *options);

/* The report about all guests of one host, which are compared. `inputs` is a list:
 * [{"name": "web1.xml", "text": "<domain ..."}, ...]. A text that cannot be read is a failed input of the report. */
char *vmdisk_lint_all(const char *inputs, const VmdiskHost *host, const char *options);

/* The numbers of a report, for programs that read no JSON. */
typedef struct VmdiskCounts {
    uint32_t errors, warnings, advice, pedantic; /* findings by severity */
    uint32_t rules_not_checked;                  /* rules that could not look at something */
    uint32_t failed_inputs;                      /* inputs that could not be read */
} VmdiskCounts;

/* Counts the findings of a report of vmdisk_lint, vmdisk_lint_all or vmdisk_fix. False if the text is none, such as an error. */
bool vmdisk_counts(const char *report, VmdiskCounts *counts);

/* {"text": the fixed text, "report": the report of what remains}. */
char *vmdisk_fix(const char *text, const VmdiskHost *host, const char *options);

/* {"text": the text with the options that its disks leave open, "decisions": those of `vmdisk decide --format json`}. */
char *vmdisk_decide(const char *text, const VmdiskHost *host, const char *options);

/* The I/O paths of `vmdisk trace --format json`. */
char *vmdisk_trace(const char *text, const VmdiskHost *host, const char *options);

/* Plans the guest of a spec: {"xml": ..., "argv": [...], "script": ..., "choices": ..., "changes": [...], "unchanged": [...]}. The
 * changes are those of `vmdisk apply --format json` that make the guest that is there as planned. */
char *vmdisk_plan(const char *spec, const VmdiskHost *host, const char *options);

/* {"text": the QEMU command line of libvirt's XML or the reverse, "losses": [what is not carried over]}; `host` is ignored. */
char *vmdisk_convert(const char *text, const VmdiskHost *host, const char *options);

#ifdef __cplusplus
}
#endif

#endif
