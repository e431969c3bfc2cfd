use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::error::{Error, ExitStatus};
use crate::port::Endpoint as _;

/// Builds a shared library from C; `None` where there is no compiler.
fn build(folder: &Path, source: &str) -> Option<std::path::PathBuf> {
    build_as("libmpi_abi.so.1", folder, source)
}

fn build_as(name: &str, folder: &Path, source: &str) -> Option<std::path::PathBuf> {
    let (code, file) = (folder.join("fake.c"), folder.join(name));
    fs::write(&code, source).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&file)
        .arg(&code)
        .status();
    match built {
        Ok(status) => {
            assert!(status.success());
            Some(file)
        }
        Err(error) => {
            eprintln!("not checked: no C compiler ({error})");
            None
        }
    }
}

#[test]
fn a_missing_symbol_is_named_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
        int MPI_Init_thread(int *c, char ***v, int r, int *p) { return 0; }
        int MPI_Finalize(void) { return 0; }
        int MPI_Abort(void *comm, int code) { return 0; }
        int MPI_Comm_rank(void *comm, int *rank) { return 0; }
        int MPI_Comm_size(void *comm, int *size) { return 0; }
        int MPI_Comm_set_errhandler(void *comm, void *handler) { return 0; }
        int MPI_Error_string(int code, char *text, int *len) { return 0; }
        int MPI_Get_library_version(char *text, int *len) { return 0; }
        int MPI_Send(void) { return 0; }
        int MPI_Recv(void) { return 0; }
        int MPI_Isend(void) { return 0; }
        int MPI_Irecv(void) { return 0; }";
    let Some(file) = build(folder.path(), source) else {
        return;
    };
    let Err(error) = Mpi::load(&file) else {
        panic!("loaded")
    };
    assert!(matches!(&error, Error::Symbol { symbol, .. } if symbol == "MPI_Waitall"));
    assert_eq!(
        error.to_string(),
        format!("{} lacks the symbol MPI_Waitall", file.display())
    );
    assert_eq!(error.exit_status(), ExitStatus::Failed);
}

#[test]
fn versions_and_errors_are_the_librarys_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let source = "
        #include <string.h>
        int MPI_Init_thread(int *c, char ***v, int r, int *p) { return 17; }
        int MPI_Finalize(void) { return 0; }
        int MPI_Abort(void *comm, int code) { return 0; }
        int MPI_Comm_rank(void *comm, int *rank) { return 0; }
        int MPI_Comm_size(void *comm, int *size) { return 0; }
        int MPI_Comm_set_errhandler(void *comm, void *handler) { return 0; }
        int MPI_Error_string(int code, char *text, int *len) {
            strcpy(text, code == 17 ? \"no network\" : \"?\"); return 0; }
        int MPI_Get_library_version(char *text, int *len) {
            strcpy(text, \"Fake  Version:\\t1.5\\nmore\"); return 0; }
        int MPI_Send(void) { return 0; }
        int MPI_Recv(void) { return 0; }
        int MPI_Isend(void) { return 0; }
        int MPI_Irecv(void) { return 0; }
        int MPI_Waitall(void) { return 0; }";
    let Some(file) = build(folder.path(), source) else {
        return;
    };
    let mpi = Mpi::load(&file).unwrap();
    assert_eq!(mpi.version(), "Fake Version: 1.5");
    assert_eq!(mpi.file(), file);
    let Err(error) = MpiPort::open(mpi, false) else {
        panic!("opened")
    };
    assert_eq!(error.to_string(), "MPI_Init_thread failed: no network");
}

/// Where handles are addresses, calls get those of the library; where neither they nor the standard's are, it is refused.
#[test]
fn open_mpis_handles_are_addresses_that_it_exports() {
    let calls = "
        int MPI_Init_thread(int *c, char ***v, int r, int *p) { *p = r; return 0; }
        int MPI_Finalize(void) { return 0; }
        int MPI_Abort(void *comm, int code) { return 0; }
        int MPI_Comm_size(void *comm, int *size) { *size = 7; return 0; }
        int MPI_Error_string(int code, char *text, int *len) { *text = 0; return 0; }
        int MPI_Get_library_version(char *text, int *len) { *text = 0; return 0; }
        int MPI_Send(void) { return 0; }
        int MPI_Recv(void) { return 0; }
        int MPI_Isend(void) { return 0; }
        int MPI_Irecv(void) { return 0; }
        int MPI_Waitall(void) { return 0; }";
    let handles = "
        char ompi_mpi_comm_world[8], ompi_mpi_byte[8], ompi_mpi_uint8_t[8], ompi_mpi_double[8], ompi_mpi_int32_t[8];
        char ompi_mpi_uint64_t[8], ompi_mpi_op_sum[8], ompi_mpi_op_max[8], ompi_mpi_errors_return[8], ompi_mpi_info_null[8];
        int MPI_Comm_rank(void *comm, int *rank) {
            *rank = comm == ompi_mpi_comm_world ? 5 : 0; return 0; }
        int MPI_Comm_set_errhandler(void *comm, void *handler) {
            return handler != ompi_mpi_errors_return; }";
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{handles}{calls}");
    let Some(file) = build_as("libmpi.so.40", folder.path(), &source) else {
        return;
    };
    let port = MpiPort::open(Mpi::load(&file).unwrap(), true).unwrap();
    assert_eq!((port.rank().as_u32(), port.size()), (5, 7));

    let folder = tempfile::tempdir().unwrap();
    let none = "
        int MPI_Comm_rank(int comm, int *rank) { return 0; }
        int MPI_Comm_set_errhandler(int comm, int handler) { return 0; }";
    let source = format!("{none}{calls}");
    let Some(file) = build_as("libmpi.so.12", folder.path(), &source) else {
        return;
    };
    let Err(error) = Mpi::load(&file) else {
        panic!("loaded")
    };
    let text = error.to_string();
    assert!(
        text.contains("libmpi.so.12") && text.contains("neither"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libmpi_abi.so.1");
    fs::write(&file, "\x7fELF and nothing more").unwrap();
    let Err(error) = Mpi::load(&file) else {
        panic!("loaded")
    };
    assert!(
        error.to_string().contains(&*file.to_string_lossy()),
        "{error}"
    );
    assert_eq!(error.exit_status(), ExitStatus::Failed);
}

#[test]
fn launchers_are_told_where_ranks_go() {
    let join = |family: Family, cpus: Option<&[usize]>| family.arguments(2, cpus).join(" ");
    assert_eq!(
        join(Family::of("MPICH Version: 5.0.2"), Some(&[0, 1])),
        "-n 2 -bind-to user:0,1"
    );
    assert_eq!(join(Family::Hydra, None), "-n 2 -bind-to none");
    // Each of more ranks than CPUs has one of them.
    let many = Family::Hydra.arguments(5, Some(&[0, 3])).join(" ");
    assert_eq!(many, "-n 5 -bind-to user:0,3,0,3,0");
    assert_eq!(
        join(Family::of("Tagwire 0.1.0"), Some(&[0, 1])),
        "-n 2 --bind 0,1"
    );
    assert_eq!(join(Family::Tagwire, None), "-n 2 --bind none");
    assert_eq!(Family::of("Open MPI v5.1.0"), Family::OpenMpi);
    assert!(join(Family::OpenMpi, None).contains("--bind-to none"));
}
