//! The scripts that call compilers.

/// A script that calls a compiler with the paths and libraries of the tree.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    variable: &'static str,
    pub(super) compiler: &'static str,
    option: &'static str,
    language: &'static str,
}

/// Those of C and C++.
pub(super) const WRAPPERS: [Wrapper; 3] = [
    Wrapper {
        name: "mpicc",
        variable: "MPI_CC",
        compiler: "cc",
        option: "-cc",
        language: "C",
    },
    Wrapper {
        name: "mpicxx",
        variable: "MPI_CXX",
        compiler: "c++",
        option: "-cxx",
        language: "C++",
    },
    Wrapper {
        name: "mpic++",
        variable: "MPI_CXX",
        compiler: "c++",
        option: "-cxx",
        language: "C++",
    },
];

/// That of Fortran.
pub(super) const FORTRAN: Wrapper = Wrapper {
    name: "mpifort",
    variable: "MPI_FC",
    compiler: super::FORTRAN,
    option: "-fc",
    language: "Fortran",
};

const COMPILER: &str = include_str!("../../mpi/compiler.sh");

impl Wrapper {
    /// Returns the script, which calls `compiler` where nothing else is said. `modules` is what finds the modules of Fortran.
    pub(super) fn script(&self, compiler: &str, modules: &str) -> String {
        let words = match modules.is_empty() {
            true => ["", "", "", "", "", "", "-lmpi_abi", "mpi_abi", ""],
            // Where the modules could not be built, `$modules` is empty: a program with mpif.h is compiled and linked all the same.
            false => [
                "${modules:+ -I$modules}",
                "${modules:+-L$modules }",
                "${modules:+ $modules}",
                "${modules:+$modules }",
                " ${modules:+\"-I$modules\"}",
                " ${modules:+\"-L$modules\"}",
                "${modules:+-lmpifort_mod }-lmpifort_abi -lmpi_abi",
                "${modules:+mpifort_mod }mpifort_abi mpi_abi",
                REBUILD,
            ],
        };
        let places = [
            "@INCLUDE@",
            "@SEARCH@",
            "@INCDIRS@",
            "@LIBDIRS@",
            "@INCLUDED@",
            "@SEARCHED@",
            "@LIBRARIES@",
            "@LIBS@",
            "@USAGE@",
        ];
        let mut script = COMPILER.replace("@MODULES@", modules);
        for (place, word) in places.iter().zip(words) {
            script = script.replace(place, word);
        }
        script
            .replace("@NAME@", self.name)
            .replace("@OPTION@", self.option)
            .replace("@VARIABLE@", self.variable)
            .replace("@COMPILER@", compiler)
            .replace("@LANGUAGE@", self.language)
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
    }
}

/// The option that C has not.
const REBUILD: &str =
    "#   @NAME@ --rebuild              builds the modules of the compiler again\n";
