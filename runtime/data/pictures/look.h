/* A look at a folder of pictures: what a configuration for it depends on. */
#ifndef TDM_DATA_PICTURES_LOOK_H
#define TDM_DATA_PICTURES_LOOK_H

#include <tandem/host.h>

typedef struct tdm_pictures_seen {
    int64_t pictures, classes;
    int64_t short_side;       /* the median of some pictures */
    double mean[3], stdev[3]; /* of their channels, from 0 to 1 */
} tdm_pictures_seen;

/* Reads up to 200 pictures, spread over the folder; those that cannot be read are passed over. TDM_E_DATA if the folder
 * has fewer than two classes, too few pictures to hold some out, or none that can be read. */
tdm_status tdm__pictures_look(const tdm_host *host, const char *folder, tdm_pictures_seen *out);

#endif
