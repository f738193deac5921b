/* What was built: a text that is another for other code or another compiler. Ranks of one job are of one build. */
#ifndef TDM_BASE_BUILD_ID_H
#define TDM_BASE_BUILD_ID_H

/* The linker's hash of this library, or of the program that it is a part of, in hex; "no build id" where there is none.
 * Written into `out`, which is returned. */
enum { TDM_BUILD_ID_TEXT = 65 };
const char *tdm__build_id(char out[TDM_BUILD_ID_TEXT]);

#endif
