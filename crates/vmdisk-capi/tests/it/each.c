/* Prints the report of each case of a file of `vmdisk_testing::cases_file`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vmdisk.h>

int main(int count, char **arguments) {
    FILE *file = fopen(arguments[count - 1], "rb");
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *cases = malloc(size);
    if (fread(cases, 1, size, file) != size) return 1;
    for (char *at = cases; at < cases + size;) {
        char *name = at, *text = name + strlen(name) + 1, *facts = text + strlen(text) + 1;
        char *options = facts + strlen(facts) + 1;
        at = options + strlen(options) + 1;
        VmdiskHost *host = *facts ? vmdisk_host_parse(facts, NULL) : NULL;
        char *report = (strcmp(name, "lint") ? vmdisk_lint_all : vmdisk_lint)(text, host, options);
        fwrite(report, 1, strlen(report) + 1, stdout);
        vmdisk_free(report);
        vmdisk_host_free(host);
    }
    free(cases);
    fclose(file);
    return 0;
}
