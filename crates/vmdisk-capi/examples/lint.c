/* Prints the report about a file: lint DOMAIN.xml [FACTS.json]. Returns 1 if the file cannot be checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vmdisk.h>

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(size + 1, 1);
    if (text == NULL || fread(text, 1, size, file) != size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

int main(int count, char **arguments) {
    if (count < 2 || vmdisk_abi_version() != 1) {
        fprintf(stderr, "usage: lint DOMAIN.xml [FACTS.json], with libvmdisk.so.1\n");
        return 1;
    }
    VmdiskHost *host = NULL;
    if (count > 2) {
        char *facts = read_file(arguments[2]), *error = NULL;
        host = vmdisk_host_parse(facts, &error);
        free(facts);
        if (host == NULL) {
            fprintf(stderr, "%s\n", error);
            vmdisk_free(error);
            return 1;
        }
    }
    char *text = read_file(arguments[1]);
    char *report = vmdisk_lint(text, host, NULL);
    int failed = strncmp(report, "{\"error\"", 8) == 0;
    fputs(report, failed ? stderr : stdout);
    vmdisk_free(report);
    vmdisk_host_free(host);
    free(text);
    return failed;
}
