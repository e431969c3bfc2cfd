#!/bin/sh
# Makes src/bindings.rs anew. Needs bindgen, libclang and the headers of UCX 1.13 (libucx-dev of
# Debian 12): newer libraries append fields and tell by masks which of them a caller knows, so the
# oldest version that we support is the one to bind.
set -eu
cd "$(dirname "$0")"
include=${UCX_INCLUDE:-/usr/include}
functions='ucp_get_version|ucp_get_version_string|ucp_init_version|ucp_cleanup|ucp_context_query'
functions="$functions|ucp_config_read|ucp_config_modify|ucp_config_release"
functions="$functions|ucp_worker_create|ucp_worker_destroy|ucp_worker_query|ucp_worker_progress"
functions="$functions|ucp_worker_get_efd|ucp_worker_arm|ucp_worker_release_address"
functions="$functions|ucp_worker_set_am_recv_handler|ucp_worker_fence|ucp_worker_flush_nbx"
functions="$functions|ucp_ep_create|ucp_ep_close_nbx|ucp_ep_flush_nbx|ucp_ep_query"
functions="$functions|ucp_am_send_nbx|ucp_am_recv_data_nbx|ucp_am_data_release"
functions="$functions|ucp_mem_map|ucp_mem_unmap|ucp_rkey_pack|ucp_rkey_buffer_release"
functions="$functions|ucp_ep_rkey_unpack|ucp_rkey_destroy|ucp_put_nbx|ucp_get_nbx|ucp_atomic_op_nbx"
functions="$functions|ucp_tag_send_nbx|ucp_tag_send_sync_nbx|ucp_tag_recv_nbx|ucp_tag_probe_nb"
functions="$functions|ucp_tag_msg_recv_nbx|ucp_request_cancel|ucp_request_check_status"
functions="$functions|ucp_request_free|ucs_status_string"
bindgen bindings.h \
    --output src/bindings.rs \
    --dynamic-loading Ucp --dynamic-link-require-all \
    --allowlist-function "$functions" \
    --allowlist-type 'ucp_(feature|params_field|worker_params_field|am_handler_param_field|ep_params_field)' \
    --allowlist-type 'ucp_(ep_close_flags_t|am_cb_flags|send_am_flags|am_recv_attr_t|op_attr_t)' \
    --allowlist-type 'ucp_(worker_attr_field|context_attr_field|mem_map_params_field)' \
    --allowlist-type 'ucp_(err_handling_mode_t|atomic_op_t|wakeup_event_types|ep_params_flags_field)' \
    --allowlist-var 'UCP_API_(MAJOR|MINOR)' \
    --default-enum-style consts --no-prepend-enum-name --no-doc-comments \
    --rust-edition 2024 --rust-target 1.85 --wrap-unsafe-ops \
    --raw-line '// Made by bindings.sh from the headers of UCX 1.13. Do not edit.' \
    -- -I"$include"
# The constructor that opens a file: src/load.rs does that, and knows what else to look after.
sed -i '/pub unsafe fn new<P>/,/^    }$/d' src/bindings.rs
rustfmt --edition 2024 src/bindings.rs
