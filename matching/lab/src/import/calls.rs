//! The names of MPI's calls, by which files of other tools are told from files of anything else.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Whether MPI has a call of this name, in any version from 1.0 to 5.0; those with large counts end with `_c`.
pub(super) fn is_call(name: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> =
        LazyLock::new(|| NAMES.split_ascii_whitespace().collect());
    match name.strip_prefix("MPI_") {
        Some(own) => {
            KNOWN.contains(own)
                || own
                    .strip_suffix("_c")
                    .is_some_and(|own| KNOWN.contains(own))
        }
        None => name
            .strip_prefix("MPIO_")
            .is_some_and(|own| OF_FILES.contains(&own)),
    }
}

/// Calls of ROMIO for requests of files, without `MPIO_`.
const OF_FILES: [&str; 8] = [
    "Test", "Testall", "Testany", "Testsome", "Wait", "Waitall", "Waitany", "Waitsome",
];

/// Without `MPI_`.
const NAMES: &str = "\
Abort Accumulate Add_error_class Add_error_code Add_error_string Address Aint_add Aint_diff Allgather Allgather_init \
Allgatherv Allgatherv_init Alloc_mem Allreduce Allreduce_init Alltoall Alltoall_init Alltoallv Alltoallv_init \
Alltoallw Alltoallw_init Attr_delete Attr_get Attr_put Barrier Barrier_init Bcast Bcast_init Bsend Bsend_init \
Buffer_attach Buffer_detach Buffer_flush Buffer_iflush Cancel Cart_coords Cart_create Cart_get Cart_map Cart_rank \
Cart_shift Cart_sub Cartdim_get Close_port Comm_accept Comm_attach_buffer Comm_call_errhandler Comm_compare \
Comm_connect Comm_create Comm_create_errhandler Comm_create_from_group Comm_create_group Comm_create_keyval \
Comm_delete_attr Comm_detach_buffer Comm_disconnect Comm_dup Comm_dup_with_info Comm_flush_buffer Comm_free \
Comm_free_keyval Comm_get_attr Comm_get_errhandler Comm_get_info Comm_get_name Comm_get_parent Comm_group Comm_idup \
Comm_idup_with_info Comm_iflush_buffer Comm_join Comm_rank Comm_remote_group Comm_remote_size Comm_set_attr \
Comm_set_errhandler Comm_set_info Comm_set_name Comm_size Comm_spawn Comm_spawn_multiple Comm_split Comm_split_type \
Comm_test_inter Compare_and_swap Dims_create Dist_graph_create Dist_graph_create_adjacent Dist_graph_neighbors \
Dist_graph_neighbors_count Errhandler_create Errhandler_free Errhandler_get Errhandler_set Error_class Error_string \
Exscan Exscan_init Fetch_and_op File_call_errhandler File_close File_create_errhandler File_delete File_get_amode \
File_get_atomicity File_get_byte_offset File_get_errhandler File_get_group File_get_info File_get_position \
File_get_position_shared File_get_size File_get_type_extent File_get_view File_iread File_iread_all File_iread_at \
File_iread_at_all File_iread_shared File_iwrite File_iwrite_all File_iwrite_at File_iwrite_at_all File_iwrite_shared \
File_open File_preallocate File_read File_read_all File_read_all_begin File_read_all_end File_read_at \
File_read_at_all File_read_at_all_begin File_read_at_all_end File_read_ordered File_read_ordered_begin \
File_read_ordered_end File_read_shared File_seek File_seek_shared File_set_atomicity File_set_errhandler \
File_set_info File_set_size File_set_view File_sync File_write File_write_all File_write_all_begin File_write_all_end \
File_write_at File_write_at_all File_write_at_all_begin File_write_at_all_end File_write_ordered \
File_write_ordered_begin File_write_ordered_end File_write_shared Finalize Finalized Free_mem Gather Gather_init \
Gatherv Gatherv_init Get Get_accumulate Get_address Get_count Get_elements Get_elements_x Get_hw_resource_info \
Get_library_version Get_processor_name Get_version Graph_create Graph_get Graph_map Graph_neighbors \
Graph_neighbors_count Graphdims_get Grequest_complete Grequest_start Group_compare Group_difference Group_excl \
Group_free Group_from_session_pset Group_incl Group_intersection Group_range_excl Group_range_incl Group_rank \
Group_size Group_translate_ranks Group_union Iallgather Iallgatherv Iallreduce Ialltoall Ialltoallv Ialltoallw \
Ibarrier Ibcast Ibsend Iexscan Igather Igatherv Improbe Imrecv Ineighbor_allgather Ineighbor_allgatherv \
Ineighbor_alltoall Ineighbor_alltoallv Ineighbor_alltoallw Info_create Info_create_env Info_delete Info_dup Info_free \
Info_get Info_get_nkeys Info_get_nthkey Info_get_string Info_get_valuelen Info_set Init Init_thread Initialized \
Intercomm_create Intercomm_create_from_groups Intercomm_merge Iprobe Irecv Ireduce Ireduce_scatter \
Ireduce_scatter_block Irsend Is_thread_main Iscan Iscatter Iscatterv Isend Isendrecv Isendrecv_replace Issend \
Keyval_create Keyval_free Lookup_name Mprobe Mrecv Neighbor_allgather Neighbor_allgather_init Neighbor_allgatherv \
Neighbor_allgatherv_init Neighbor_alltoall Neighbor_alltoall_init Neighbor_alltoallv Neighbor_alltoallv_init \
Neighbor_alltoallw Neighbor_alltoallw_init Op_commutative Op_create Op_free Open_port Pack Pack_external \
Pack_external_size Pack_size Parrived Pcontrol Pready Pready_list Pready_range Precv_init Probe Psend_init \
Publish_name Put Query_thread Raccumulate Recv Recv_init Reduce Reduce_init Reduce_local Reduce_scatter \
Reduce_scatter_block Reduce_scatter_block_init Reduce_scatter_init Register_datarep Remove_error_class \
Remove_error_code Remove_error_string Request_free Request_get_status Request_get_status_all Request_get_status_any \
Request_get_status_some Rget Rget_accumulate Rput Rsend Rsend_init Scan Scan_init Scatter Scatter_init Scatterv \
Scatterv_init Send Send_init Sendrecv Sendrecv_replace Session_attach_buffer Session_call_errhandler \
Session_create_errhandler Session_detach_buffer Session_finalize Session_flush_buffer Session_get_errhandler \
Session_get_info Session_get_nth_pset Session_get_num_psets Session_get_pset_info Session_iflush_buffer Session_init \
Session_set_errhandler Ssend Ssend_init Start Startall Status_get_error Status_get_source Status_get_tag \
Status_set_cancelled Status_set_elements Status_set_elements_x Status_set_error Status_set_source Status_set_tag Test \
Test_cancelled Testall Testany Testsome Topo_test Type_commit Type_contiguous Type_create_darray \
Type_create_f90_complex Type_create_f90_integer Type_create_f90_real Type_create_hindexed Type_create_hindexed_block \
Type_create_hvector Type_create_indexed_block Type_create_keyval Type_create_resized Type_create_struct \
Type_create_subarray Type_delete_attr Type_dup Type_extent Type_free Type_free_keyval Type_get_attr Type_get_contents \
Type_get_envelope Type_get_extent Type_get_extent_x Type_get_name Type_get_true_extent Type_get_true_extent_x \
Type_get_value_index Type_hindexed Type_hvector Type_indexed Type_lb Type_match_size Type_set_attr Type_set_name \
Type_size Type_size_x Type_struct Type_ub Type_vector Unpack Unpack_external Unpublish_name Wait Waitall Waitany \
Waitsome Win_allocate Win_allocate_shared Win_attach Win_call_errhandler Win_complete Win_create Win_create_dynamic \
Win_create_errhandler Win_create_keyval Win_delete_attr Win_detach Win_fence Win_flush Win_flush_all Win_flush_local \
Win_flush_local_all Win_free Win_free_keyval Win_get_attr Win_get_errhandler Win_get_group Win_get_info Win_get_name \
Win_lock Win_lock_all Win_post Win_set_attr Win_set_errhandler Win_set_info Win_set_name Win_shared_query Win_start \
Win_sync Win_test Win_unlock Win_unlock_all Win_wait Wtick Wtime";
