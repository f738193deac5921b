/* The table of calls for modules and ops: they do not link tandem, so they get its functions this way. */
#include "runtime/base/system/env.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/module/module.h"

const tdm_host_calls tdm__host_calls = {
    .fail = tdm__fail,
    .frame = tdm__frame,
    .environment = tdm__env_by_name,
    .comm_call = tdm__comm_call,
};
