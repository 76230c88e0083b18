/* vmdisk: reads, checks, generates and explains the disk configuration of QEMU/libvirt guests.
 *
 * Every text is UTF-8 and ends with a zero byte. Results are JSON in the shapes of `vmdisk schema`; a call that fails returns
 * an object with the member "error": {"error": {"message": ..., "start": ..., "end": ..., "help": ...}}. All functions may be
 * called from several threads at once, also with the same host. None ends the program, opens a file or prints. */
#ifndef VMDISK_H
#define VMDISK_H

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
 * NULL. `options` is NULL or an object: {"name": "web1.xml", "target": "qemu=9.2,libvirt=10.0", "policy": "multi-tenant",
 * "unsafe_fixes": false}, each member optional. The result is to be freed with vmdisk_free. */

/* The report of `vmdisk lint --format json`. */
char *vmdisk_lint(const char *text, const VmdiskHost *host, const char *options);

/* {"text": the fixed text, "report": the report of what remains}. */
char *vmdisk_fix(const char *text, const VmdiskHost *host, const char *options);

/* {"text": the text with the options that its disks leave open, "decisions": those of `vmdisk decide --format json`}. */
char *vmdisk_decide(const char *text, const VmdiskHost *host, const char *options);

/* The I/O paths of `vmdisk trace --format json`. */
char *vmdisk_trace(const char *text, const VmdiskHost *host, const char *options);

/* Plans the guest of a spec: {"xml": ..., "argv": [...], "script": ..., "choices": ...}. */
char *vmdisk_plan(const char *spec, const VmdiskHost *host, const char *options);

/* {"text": the QEMU command line of libvirt's XML or the reverse, "losses": [what is not carried over]}; `host` is ignored. */
char *vmdisk_convert(const char *text, const VmdiskHost *host, const char *options);

#ifdef __cplusplus
}
#endif

#endif
