# The target mpi_abi::mpi_abi: MPI on Tagwire, by the binary interface of the MPI standard.
get_filename_component(_mpi_abi_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET mpi_abi::mpi_abi)
  add_library(mpi_abi::mpi_abi SHARED IMPORTED)
  set_target_properties(mpi_abi::mpi_abi PROPERTIES
    IMPORTED_LOCATION "${_mpi_abi_prefix}/lib/libmpi_abi.so.1"
    IMPORTED_SONAME "libmpi_abi.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_mpi_abi_prefix}/include")
endif()
unset(_mpi_abi_prefix)
