/* What bindings.sh reads: the parts of UCP that Tagwire uses. */
#include <ucp/api/ucp.h>
