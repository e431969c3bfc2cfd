// Made by ci/bindings. Not to be edited.
layouts! {
fi_ioc { addr, count, }
fi_tx_attr { caps, mode, op_flags, msg_order, comp_order, inject_size, size, iov_limit, rma_iov_limit, tclass, }
fi_rx_attr { caps, mode, op_flags, msg_order, comp_order, total_buffered_recv, size, iov_limit, }
fi_ep_attr { type_, protocol, protocol_version, max_msg_size, msg_prefix_size, max_order_raw_size, max_order_war_size, max_order_waw_size, mem_tag_format, tx_ctx_cnt, rx_ctx_cnt, auth_key_size, auth_key, }
fi_domain_attr { domain, name, threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode, mr_key_size, cq_data_size, cq_cnt, ep_cnt, tx_ctx_cnt, rx_ctx_cnt, max_ep_tx_ctx, max_ep_rx_ctx, max_ep_stx_ctx, max_ep_srx_ctx, cntr_cnt, mr_iov_limit, caps, mode, auth_key, auth_key_size, max_err_data, mr_cnt, tclass, }
fi_fabric_attr { fabric, name, prov_name, prov_version, api_version, }
fi_info { next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle, tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr, nic, }
fi_device_attr { name, device_id, device_version, vendor_id, driver, firmware, }
fi_pci_attr { domain_id, bus_id, device_id, function_id, }
fi_bus_attr { bus_type, attr, }
fi_link_attr { address, mtu, speed, state, network_type, }
fi_ops { size, close, bind, control, ops_open, tostr, ops_set, }
fid { fclass, context, ops, }
fi_ops_fabric { size, domain, passive_ep, eq_open, wait_open, trywait, domain2, }
fid_fabric { fid, ops, api_version, }
fi_fid_var { name, val, }
fi_mr_raw_attr { flags, base_addr, raw_key, key_size, }
fi_param { name, type_, help_string, value, }
fi_context { internal, }
fi_context2 { internal, }
fi_wait_attr { wait_obj, flags, }
fi_poll_attr { flags, }
fi_eq_attr { size, flags, wait_obj, signaling_vector, wait_set, }
fi_eq_err_entry { fid, context, data, err, prov_errno, err_data, err_data_size, }
fi_ops_eq { size, read, readerr, write, sread, strerror, }
fi_cq_entry { op_context, }
fi_cq_msg_entry { op_context, flags, len, }
fi_cq_data_entry { op_context, flags, len, buf, data, }
fi_cq_tagged_entry { op_context, flags, len, buf, data, tag, }
fi_cq_err_entry { op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data, err_data_size, }
fi_cq_attr { size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set, }
fi_ops_cq { size, read, readfrom, readerr, sread, sreadfrom, signal, strerror, }
fid_cq { fid, ops, }
fi_cntr_attr { events, wait_obj, wait_set, flags, }
fi_ops_cntr { size, read, readerr, add, set, wait, adderr, seterr, }
fi_av_attr { type_, rx_ctx_bits, count, ep_per_node, name, map_addr, flags, }
fi_av_set_attr { count, start_addr, end_addr, stride, comm_key_size, comm_key, flags, }
fi_ops_av { size, insert, insertsvc, insertsym, remove, lookup, straddr, av_set, }
fid_av { fid, ops, }
fid_mr { fid, mem_desc, key, }
fi_mr_attr { mr_iov, iov_count, access, offset, requested_key, context, auth_key_size, auth_key, iface, device, }
fi_ops_domain { size, av_open, cq_open, endpoint, scalable_ep, cntr_open, poll_open, stx_ctx, srx_ctx, query_atomic, query_collective, endpoint2, }
fi_ops_mr { size, reg, regv, regattr, }
fid_domain { fid, ops, mr, }
fi_msg { msg_iov, desc, iov_count, addr, context, data, }
fi_ops_ep { size, cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left, }
fi_ops_msg { size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata, }
fid_ep { fid, ops, cm, msg, rma, tagged, atomic, collective, }
fi_ops_cm { size, setname, getname, getpeer, connect, listen, accept, reject, shutdown, join, }
fi_msg_tagged { msg_iov, desc, iov_count, addr, tag, ignore, context, data, }
fi_ops_tagged { size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata, }
fi_rma_iov { addr, len, key, }
fi_rma_ioc { addr, count, key, }
fi_msg_rma { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data, }
fi_ops_rma { size, read, readv, readmsg, write, writev, writemsg, inject, writedata, injectdata, }
fi_atomic_attr { count, size, }
fi_msg_atomic { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, datatype, op, context, data, }
fi_msg_fetch { msg_iov, desc, iov_count, }
fi_msg_compare { msg_iov, desc, iov_count, }
}
