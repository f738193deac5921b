/* Identifies the build: the text differs for other code or another compiler. All ranks of a job must be of one build.
 */
#ifndef TDM_BASE_BUILD_ID_H
#define TDM_BASE_BUILD_ID_H

/* Writes the linker's build id of this library, or of the program that it is linked into, as hex digits; "no build id"
 * if there is none. Returns `out`. */
enum { TDM_BUILD_ID_TEXT = 65 };
const char *tdm__build_id(char out[TDM_BUILD_ID_TEXT]);

#endif
