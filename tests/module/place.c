/* A program that goes elsewhere before it looks for modules, and may remove its own file before that.
 *   place FOLDER [FILE] */
#include <stdio.h>
#include <unistd.h>

#include <tandem/doctor.h>

int main(int argc, char **argv) {
    char *text = NULL;
    if (argc < 2 || (argc > 2 && unlink(argv[2]) != 0) || chdir(argv[1]) != 0) return 2;
    const tdm_status status = tdm_environment(NULL, 0, &text);
    if (text != NULL) fputs(text, stdout);
    tdm_free(text);
    return status != TDM_OK && status != TDM_E_CHECK; /* this machine's faults are not the point */
}
