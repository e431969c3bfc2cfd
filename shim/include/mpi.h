/* Tagwire's mpi.h: the standard ABI of MPI 5.0.
 *
 * Written by shim/api from functions.txt and constants.txt: change those, not this file.
 */
#ifndef TAGWIRE_MPI_H
#define TAGWIRE_MPI_H

#if defined(MPI_VERSION) || defined(MPICH_VERSION) || defined(MPICH_NAME) || defined(OMPI_MAJOR_VERSION) \
    || defined(OPEN_MPI) || defined(I_MPI_VERSION) || defined(MVAPICH2_VERSION) || defined(MSMPI_VER)
#error "Tagwire: the mpi.h of another MPI has been included before this one: look for its folder in the include path"
#endif

/* Another header of the same ABI, included later, has nothing to add. */
#define MPI_H_ABI

#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

/* Versions of the standard and of its binary interface */

#define MPI_VERSION                            5
#define MPI_SUBVERSION                         0
#define MPI_ABI_VERSION                        1
#define MPI_ABI_SUBVERSION                     0

/* Communicators */

typedef struct MPI_ABI_Comm *MPI_Comm; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_COMM_NULL                          ((MPI_Comm)0x100)
#define MPI_COMM_WORLD                         ((MPI_Comm)0x101)
#define MPI_COMM_SELF                          ((MPI_Comm)0x102)
#define MPI_IDENT                              201
#define MPI_CONGRUENT                          202
#define MPI_SIMILAR                            203
#define MPI_UNEQUAL                            204
#define MPI_COMM_TYPE_SHARED                   221
#define MPI_COMM_TYPE_HW_UNGUIDED              222
#define MPI_COMM_TYPE_HW_GUIDED                223
#define MPI_COMM_TYPE_RESOURCE_GUIDED          224

/* Groups */

typedef struct MPI_ABI_Group *MPI_Group; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_GROUP_NULL                         ((MPI_Group)0x108)
#define MPI_GROUP_EMPTY                        ((MPI_Group)0x109)

/* Datatypes */

typedef struct MPI_ABI_Datatype *MPI_Datatype; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_DATATYPE_NULL                      ((MPI_Datatype)0x200)
#define MPI_AINT                               ((MPI_Datatype)0x201)
#define MPI_COUNT                              ((MPI_Datatype)0x202)
#define MPI_OFFSET                             ((MPI_Datatype)0x203)
#define MPI_PACKED                             ((MPI_Datatype)0x207)
#define MPI_SHORT                              ((MPI_Datatype)0x208)
#define MPI_INT                                ((MPI_Datatype)0x209)
#define MPI_LONG                               ((MPI_Datatype)0x20a)
#define MPI_LONG_LONG                          ((MPI_Datatype)0x20b)
#define MPI_LONG_LONG_INT                      MPI_LONG_LONG
#define MPI_UNSIGNED_SHORT                     ((MPI_Datatype)0x20c)
#define MPI_UNSIGNED                           ((MPI_Datatype)0x20d)
#define MPI_UNSIGNED_LONG                      ((MPI_Datatype)0x20e)
#define MPI_UNSIGNED_LONG_LONG                 ((MPI_Datatype)0x20f)
#define MPI_FLOAT                              ((MPI_Datatype)0x210)
#define MPI_C_FLOAT_COMPLEX                    ((MPI_Datatype)0x212)
#define MPI_C_COMPLEX                          MPI_C_FLOAT_COMPLEX
#define MPI_CXX_FLOAT_COMPLEX                  ((MPI_Datatype)0x213)
#define MPI_DOUBLE                             ((MPI_Datatype)0x214)
#define MPI_C_DOUBLE_COMPLEX                   ((MPI_Datatype)0x216)
#define MPI_CXX_DOUBLE_COMPLEX                 ((MPI_Datatype)0x217)
#define MPI_LONG_DOUBLE                        ((MPI_Datatype)0x220)
#define MPI_C_LONG_DOUBLE_COMPLEX              ((MPI_Datatype)0x224)
#define MPI_CXX_LONG_DOUBLE_COMPLEX            ((MPI_Datatype)0x225)
#define MPI_C_BOOL                             ((MPI_Datatype)0x238)
#define MPI_CXX_BOOL                           ((MPI_Datatype)0x239)
#define MPI_WCHAR                              ((MPI_Datatype)0x23c)
#define MPI_FLOAT_INT                          ((MPI_Datatype)0x228)
#define MPI_DOUBLE_INT                         ((MPI_Datatype)0x229)
#define MPI_LONG_INT                           ((MPI_Datatype)0x22a)
#define MPI_2INT                               ((MPI_Datatype)0x22b)
#define MPI_SHORT_INT                          ((MPI_Datatype)0x22c)
#define MPI_LONG_DOUBLE_INT                    ((MPI_Datatype)0x22d)
#define MPI_INT8_T                             ((MPI_Datatype)0x240)
#define MPI_UINT8_T                            ((MPI_Datatype)0x241)
#define MPI_CHAR                               ((MPI_Datatype)0x243)
#define MPI_SIGNED_CHAR                        ((MPI_Datatype)0x244)
#define MPI_UNSIGNED_CHAR                      ((MPI_Datatype)0x245)
#define MPI_BYTE                               ((MPI_Datatype)0x247)
#define MPI_INT16_T                            ((MPI_Datatype)0x248)
#define MPI_UINT16_T                           ((MPI_Datatype)0x249)
#define MPI_INT32_T                            ((MPI_Datatype)0x250)
#define MPI_UINT32_T                           ((MPI_Datatype)0x251)
#define MPI_INT64_T                            ((MPI_Datatype)0x258)
#define MPI_UINT64_T                           ((MPI_Datatype)0x259)
#define MPI_LOGICAL                            ((MPI_Datatype)0x218)
#define MPI_INTEGER                            ((MPI_Datatype)0x219)
#define MPI_REAL                               ((MPI_Datatype)0x21a)
#define MPI_COMPLEX                            ((MPI_Datatype)0x21b)
#define MPI_DOUBLE_PRECISION                   ((MPI_Datatype)0x21c)
#define MPI_DOUBLE_COMPLEX                     ((MPI_Datatype)0x21d)
#define MPI_CHARACTER                          ((MPI_Datatype)0x21e)
#define MPI_2REAL                              ((MPI_Datatype)0x230)
#define MPI_2DOUBLE_PRECISION                  ((MPI_Datatype)0x231)
#define MPI_2INTEGER                           ((MPI_Datatype)0x232)
#define MPI_LOGICAL1                           ((MPI_Datatype)0x2c0)
#define MPI_INTEGER1                           ((MPI_Datatype)0x2c1)
#define MPI_LOGICAL2                           ((MPI_Datatype)0x2c8)
#define MPI_INTEGER2                           ((MPI_Datatype)0x2c9)
#define MPI_REAL2                              ((MPI_Datatype)0x2ca)
#define MPI_LOGICAL4                           ((MPI_Datatype)0x2d0)
#define MPI_INTEGER4                           ((MPI_Datatype)0x2d1)
#define MPI_REAL4                              ((MPI_Datatype)0x2d2)
#define MPI_COMPLEX4                           ((MPI_Datatype)0x2d3)
#define MPI_LOGICAL8                           ((MPI_Datatype)0x2d8)
#define MPI_INTEGER8                           ((MPI_Datatype)0x2d9)
#define MPI_REAL8                              ((MPI_Datatype)0x2da)
#define MPI_COMPLEX8                           ((MPI_Datatype)0x2db)
#define MPI_LOGICAL16                          ((MPI_Datatype)0x2e0)
#define MPI_INTEGER16                          ((MPI_Datatype)0x2e1)
#define MPI_REAL16                             ((MPI_Datatype)0x2e2)
#define MPI_COMPLEX16                          ((MPI_Datatype)0x2e3)
#define MPI_COMPLEX32                          ((MPI_Datatype)0x2eb)
#define MPI_ORDER_C                            12
#define MPI_ORDER_FORTRAN                      15
#define MPI_DISTRIBUTE_NONE                    16
#define MPI_DISTRIBUTE_BLOCK                   17
#define MPI_DISTRIBUTE_CYCLIC                  18
#define MPI_DISTRIBUTE_DFLT_DARG               19
#define MPI_COMBINER_NAMED                     101
#define MPI_COMBINER_DUP                       102
#define MPI_COMBINER_CONTIGUOUS                103
#define MPI_COMBINER_VECTOR                    104
#define MPI_COMBINER_HVECTOR                   105
#define MPI_COMBINER_INDEXED                   106
#define MPI_COMBINER_HINDEXED                  107
#define MPI_COMBINER_INDEXED_BLOCK             108
#define MPI_COMBINER_HINDEXED_BLOCK            109
#define MPI_COMBINER_STRUCT                    110
#define MPI_COMBINER_SUBARRAY                  111
#define MPI_COMBINER_DARRAY                    112
#define MPI_COMBINER_F90_REAL                  113
#define MPI_COMBINER_F90_COMPLEX               114
#define MPI_COMBINER_F90_INTEGER               115
#define MPI_COMBINER_RESIZED                   116
#define MPI_COMBINER_VALUE_INDEX               117
#define MPI_TYPECLASS_INTEGER                  192
#define MPI_TYPECLASS_REAL                     193
#define MPI_TYPECLASS_COMPLEX                  194

/* Requests, messages and operations */

typedef struct MPI_ABI_Request *MPI_Request; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_REQUEST_NULL                       ((MPI_Request)0x180)
typedef struct MPI_ABI_Message *MPI_Message; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_MESSAGE_NULL                       ((MPI_Message)0x128)
#define MPI_MESSAGE_NO_PROC                    ((MPI_Message)0x129)
typedef struct MPI_ABI_Op *MPI_Op; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_OP_NULL                            ((MPI_Op)0x20)
#define MPI_SUM                                ((MPI_Op)0x21)
#define MPI_MIN                                ((MPI_Op)0x22)
#define MPI_MAX                                ((MPI_Op)0x23)
#define MPI_PROD                               ((MPI_Op)0x24)
#define MPI_BAND                               ((MPI_Op)0x28)
#define MPI_BOR                                ((MPI_Op)0x29)
#define MPI_BXOR                               ((MPI_Op)0x2a)
#define MPI_LAND                               ((MPI_Op)0x30)
#define MPI_LOR                                ((MPI_Op)0x31)
#define MPI_LXOR                               ((MPI_Op)0x32)
#define MPI_MINLOC                             ((MPI_Op)0x38)
#define MPI_MAXLOC                             ((MPI_Op)0x39)
#define MPI_REPLACE                            ((MPI_Op)0x3c)
#define MPI_NO_OP                              ((MPI_Op)0x3d)

/* Windows */

typedef struct MPI_ABI_Win *MPI_Win; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_WIN_NULL                           ((MPI_Win)0x110)
#define MPI_LOCK_EXCLUSIVE                     301
#define MPI_LOCK_SHARED                        302
#define MPI_WIN_FLAVOR_CREATE                  311
#define MPI_WIN_FLAVOR_ALLOCATE                312
#define MPI_WIN_FLAVOR_DYNAMIC                 313
#define MPI_WIN_FLAVOR_SHARED                  314
#define MPI_WIN_UNIFIED                        321
#define MPI_WIN_SEPARATE                       322
#define MPI_MODE_NOCHECK                       1024
#define MPI_MODE_NOPRECEDE                     2048
#define MPI_MODE_NOPUT                         4096
#define MPI_MODE_NOSTORE                       8192
#define MPI_MODE_NOSUCCEED                     16384

/* Files */

typedef struct MPI_ABI_File *MPI_File; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_FILE_NULL                          ((MPI_File)0x118)
#define MPI_MODE_APPEND                        1
#define MPI_MODE_CREATE                        2
#define MPI_MODE_DELETE_ON_CLOSE               4
#define MPI_MODE_EXCL                          8
#define MPI_MODE_RDONLY                        16
#define MPI_MODE_RDWR                          32
#define MPI_MODE_SEQUENTIAL                    64
#define MPI_MODE_UNIQUE_OPEN                   128
#define MPI_MODE_WRONLY                        256
#define MPI_DISPLACEMENT_CURRENT               ((MPI_Offset)-1)
#define MPI_SEEK_CUR                           401
#define MPI_SEEK_END                           402
#define MPI_SEEK_SET                           403

/* Sessions, info and error handlers */

typedef struct MPI_ABI_Session *MPI_Session; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_SESSION_NULL                       ((MPI_Session)0x120)
typedef struct MPI_ABI_Info *MPI_Info; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_INFO_NULL                          ((MPI_Info)0x130)
#define MPI_INFO_ENV                           ((MPI_Info)0x131)
typedef struct MPI_ABI_Errhandler *MPI_Errhandler; /* a conflict here: another MPI's mpi.h follows Tagwire's */
#define MPI_ERRHANDLER_NULL                    ((MPI_Errhandler)0x140)
#define MPI_ERRORS_ARE_FATAL                   ((MPI_Errhandler)0x141)
#define MPI_ERRORS_ABORT                       ((MPI_Errhandler)0x142)
#define MPI_ERRORS_RETURN                      ((MPI_Errhandler)0x143)

/* Ranks, tags and other integers */

#define MPI_ANY_SOURCE                         (-1)
#define MPI_ANY_TAG                            (-2)
#define MPI_PROC_NULL                          (-3)
#define MPI_ROOT                               (-4)
#define MPI_UNDEFINED                          (-32766)
#define MPI_THREAD_SINGLE                      0
#define MPI_THREAD_FUNNELED                    1024
#define MPI_THREAD_SERIALIZED                  2048
#define MPI_THREAD_MULTIPLE                    4096
#define MPI_CART                               211
#define MPI_GRAPH                              212
#define MPI_DIST_GRAPH                         213
#define MPI_BSEND_OVERHEAD                     512
#define MPI_MAX_DATAREP_STRING                 128
#define MPI_MAX_ERROR_STRING                   512
#define MPI_MAX_INFO_KEY                       256
#define MPI_MAX_INFO_VAL                       1024
#define MPI_MAX_LIBRARY_VERSION_STRING         8192
#define MPI_MAX_OBJECT_NAME                    128
#define MPI_MAX_PORT_NAME                      1024
#define MPI_MAX_PROCESSOR_NAME                 256
#define MPI_MAX_STRINGTAG_LEN                  1024
#define MPI_MAX_PSET_NAME_LEN                  1024
#define MPI_F_STATUS_SIZE                      8
#define MPI_F_SOURCE                           0
#define MPI_F_TAG                              1
#define MPI_F_ERROR                            2

/* Addresses */

#define MPI_BOTTOM                             ((void *)0)
#define MPI_IN_PLACE                           ((void *)1)
#define MPI_BUFFER_AUTOMATIC                   ((void *)2)
#define MPI_ARGV_NULL                          ((char **)0)
#define MPI_ARGVS_NULL                         ((char ***)0)
#define MPI_ERRCODES_IGNORE                    ((int *)0)
#define MPI_STATUS_IGNORE                      ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE                    ((MPI_Status *)0)
#define MPI_UNWEIGHTED                         ((int *)10)
#define MPI_WEIGHTS_EMPTY                      ((int *)11)

/* Keys of predefined attributes */

#define MPI_KEYVAL_INVALID                     0
#define MPI_TAG_UB                             501
#define MPI_IO                                 502
#define MPI_HOST                               503
#define MPI_WTIME_IS_GLOBAL                    504
#define MPI_APPNUM                             505
#define MPI_LASTUSEDCODE                       506
#define MPI_UNIVERSE_SIZE                      507
#define MPI_WIN_BASE                           601
#define MPI_WIN_DISP_UNIT                      602
#define MPI_WIN_SIZE                           603
#define MPI_WIN_CREATE_FLAVOR                  604
#define MPI_WIN_MODEL                          605

/* Error classes */

#define MPI_SUCCESS                            0
#define MPI_ERR_BUFFER                         1
#define MPI_ERR_COUNT                          2
#define MPI_ERR_TYPE                           3
#define MPI_ERR_TAG                            4
#define MPI_ERR_COMM                           5
#define MPI_ERR_RANK                           6
#define MPI_ERR_REQUEST                        7
#define MPI_ERR_ROOT                           8
#define MPI_ERR_GROUP                          9
#define MPI_ERR_OP                             10
#define MPI_ERR_TOPOLOGY                       11
#define MPI_ERR_DIMS                           12
#define MPI_ERR_ARG                            13
#define MPI_ERR_UNKNOWN                        14
#define MPI_ERR_TRUNCATE                       15
#define MPI_ERR_OTHER                          16
#define MPI_ERR_INTERN                         17
#define MPI_ERR_PENDING                        18
#define MPI_ERR_IN_STATUS                      19
#define MPI_ERR_ACCESS                         20
#define MPI_ERR_AMODE                          21
#define MPI_ERR_ASSERT                         22
#define MPI_ERR_BAD_FILE                       23
#define MPI_ERR_BASE                           24
#define MPI_ERR_CONVERSION                     25
#define MPI_ERR_DISP                           26
#define MPI_ERR_DUP_DATAREP                    27
#define MPI_ERR_FILE_EXISTS                    28
#define MPI_ERR_FILE_IN_USE                    29
#define MPI_ERR_FILE                           30
#define MPI_ERR_INFO_KEY                       31
#define MPI_ERR_INFO_NOKEY                     32
#define MPI_ERR_INFO_VALUE                     33
#define MPI_ERR_INFO                           34
#define MPI_ERR_IO                             35
#define MPI_ERR_KEYVAL                         36
#define MPI_ERR_LOCKTYPE                       37
#define MPI_ERR_NAME                           38
#define MPI_ERR_NO_MEM                         39
#define MPI_ERR_NOT_SAME                       40
#define MPI_ERR_NO_SPACE                       41
#define MPI_ERR_NO_SUCH_FILE                   42
#define MPI_ERR_PORT                           43
#define MPI_ERR_QUOTA                          44
#define MPI_ERR_READ_ONLY                      45
#define MPI_ERR_RMA_ATTACH                     46
#define MPI_ERR_RMA_CONFLICT                   47
#define MPI_ERR_RMA_RANGE                      48
#define MPI_ERR_RMA_SHARED                     49
#define MPI_ERR_RMA_SYNC                       50
#define MPI_ERR_SERVICE                        51
#define MPI_ERR_SIZE                           52
#define MPI_ERR_SPAWN                          53
#define MPI_ERR_UNSUPPORTED_DATAREP            54
#define MPI_ERR_UNSUPPORTED_OPERATION          55
#define MPI_ERR_WIN                            56
#define MPI_ERR_RMA_FLAVOR                     57
#define MPI_ERR_PROC_ABORTED                   58
#define MPI_ERR_VALUE_TOO_LARGE                59
#define MPI_ERR_SESSION                        60
#define MPI_ERR_ERRHANDLER                     61
#define MPI_ERR_ABI                            62
#define MPI_ERR_LASTCODE                       16383
#define MPI_T_ERR_CANNOT_INIT                  1001
#define MPI_T_ERR_NOT_ACCESSIBLE               1002
#define MPI_T_ERR_NOT_INITIALIZED              1003
#define MPI_T_ERR_NOT_SUPPORTED                1004
#define MPI_T_ERR_MEMORY                       1005
#define MPI_T_ERR_INVALID                      1006
#define MPI_T_ERR_INVALID_INDEX                1007
#define MPI_T_ERR_INVALID_ITEM                 1008
#define MPI_T_ERR_INVALID_SESSION              1009
#define MPI_T_ERR_INVALID_HANDLE               1010
#define MPI_T_ERR_INVALID_NAME                 1011
#define MPI_T_ERR_OUT_OF_HANDLES               1012
#define MPI_T_ERR_OUT_OF_SESSIONS              1013
#define MPI_T_ERR_CVAR_SET_NOT_NOW             1014
#define MPI_T_ERR_CVAR_SET_NEVER               1015
#define MPI_T_ERR_PVAR_NO_WRITE                1016
#define MPI_T_ERR_PVAR_NO_STARTSTOP            1017
#define MPI_T_ERR_PVAR_NO_ATOMIC               1018

/* The tools' interface */

typedef struct MPI_T_enum_t *MPI_T_enum;
typedef struct MPI_T_cvar_handle_t *MPI_T_cvar_handle;
typedef struct MPI_T_pvar_handle_t *MPI_T_pvar_handle;
typedef struct MPI_T_pvar_session_t *MPI_T_pvar_session;
typedef struct MPI_T_event_registration_t *MPI_T_event_registration;
typedef struct MPI_T_event_instance_t *MPI_T_event_instance;
#define MPI_T_ENUM_NULL                        ((MPI_T_enum)0)
#define MPI_T_CVAR_HANDLE_NULL                 ((MPI_T_cvar_handle)0)
#define MPI_T_PVAR_SESSION_NULL                ((MPI_T_pvar_session)0)
#define MPI_T_PVAR_HANDLE_NULL                 ((MPI_T_pvar_handle)0)
#define MPI_T_PVAR_ALL_HANDLES                 ((MPI_T_pvar_handle)1)
typedef enum MPI_T_cb_safety {
    MPI_T_CB_REQUIRE_NONE = 0,
    MPI_T_CB_REQUIRE_MPI_RESTRICTED = 3,
    MPI_T_CB_REQUIRE_THREAD_SAFE = 15,
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE = 63
} MPI_T_cb_safety;
typedef enum MPI_T_source_order {
    MPI_T_SOURCE_ORDERED = 1,
    MPI_T_SOURCE_UNORDERED = 2
} MPI_T_source_order;
#define MPI_T_VERBOSITY_USER_BASIC             9
#define MPI_T_VERBOSITY_USER_DETAIL            10
#define MPI_T_VERBOSITY_USER_ALL               12
#define MPI_T_VERBOSITY_TUNER_BASIC            17
#define MPI_T_VERBOSITY_TUNER_DETAIL           18
#define MPI_T_VERBOSITY_TUNER_ALL              20
#define MPI_T_VERBOSITY_MPIDEV_BASIC           33
#define MPI_T_VERBOSITY_MPIDEV_DETAIL          34
#define MPI_T_VERBOSITY_MPIDEV_ALL             36
#define MPI_T_BIND_NO_OBJECT                   1
#define MPI_T_BIND_MPI_COMM                    2
#define MPI_T_BIND_MPI_DATATYPE                3
#define MPI_T_BIND_MPI_ERRHANDLER              4
#define MPI_T_BIND_MPI_FILE                    5
#define MPI_T_BIND_MPI_GROUP                   6
#define MPI_T_BIND_MPI_OP                      7
#define MPI_T_BIND_MPI_REQUEST                 8
#define MPI_T_BIND_MPI_WIN                     9
#define MPI_T_BIND_MPI_MESSAGE                 10
#define MPI_T_BIND_MPI_INFO                    11
#define MPI_T_BIND_MPI_SESSION                 12
#define MPI_T_SCOPE_CONSTANT                   1
#define MPI_T_SCOPE_READONLY                   2
#define MPI_T_SCOPE_LOCAL                      3
#define MPI_T_SCOPE_GROUP                      4
#define MPI_T_SCOPE_GROUP_EQ                   5
#define MPI_T_SCOPE_ALL                        6
#define MPI_T_SCOPE_ALL_EQ                     7
#define MPI_T_PVAR_CLASS_STATE                 1
#define MPI_T_PVAR_CLASS_LEVEL                 2
#define MPI_T_PVAR_CLASS_SIZE                  3
#define MPI_T_PVAR_CLASS_PERCENTAGE            4
#define MPI_T_PVAR_CLASS_HIGHWATERMARK         5
#define MPI_T_PVAR_CLASS_LOWWATERMARK          6
#define MPI_T_PVAR_CLASS_COUNTER               7
#define MPI_T_PVAR_CLASS_AGGREGATE             8
#define MPI_T_PVAR_CLASS_TIMER                 9
#define MPI_T_PVAR_CLASS_GENERIC               10

/* Functions of the caller */

typedef void (MPI_User_function)(void *from, void *to, int *n, MPI_Datatype *type);
typedef void (MPI_User_function_c)(void *from, void *to, MPI_Count *n, MPI_Datatype *type);
typedef int (MPI_Grequest_query_function)(void *state, MPI_Status *status);
typedef int (MPI_Grequest_free_function)(void *state);
typedef int (MPI_Grequest_cancel_function)(void *state, int complete);
typedef int (MPI_Copy_function)(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag);
typedef int (MPI_Delete_function)(MPI_Comm comm, int key, void *value, void *state);
typedef int (MPI_Comm_copy_attr_function)(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag);
typedef int (MPI_Comm_delete_attr_function)(MPI_Comm comm, int key, void *value, void *state);
typedef int (MPI_Type_copy_attr_function)(MPI_Datatype type, int key, void *state, void *value, void *copy, int *flag);
typedef int (MPI_Type_delete_attr_function)(MPI_Datatype type, int key, void *value, void *state);
typedef int (MPI_Win_copy_attr_function)(MPI_Win win, int key, void *state, void *value, void *copy, int *flag);
typedef int (MPI_Win_delete_attr_function)(MPI_Win win, int key, void *value, void *state);
typedef int (MPI_Datarep_extent_function)(MPI_Datatype type, MPI_Aint *extent, void *state);
typedef int (MPI_Datarep_conversion_function)(void *user, MPI_Datatype type, int n, void *file, MPI_Offset position,
    void *state);
typedef int (MPI_Datarep_conversion_function_c)(void *user, MPI_Datatype type, MPI_Count n, void *file,
    MPI_Offset position, void *state);
typedef void (MPI_Comm_errhandler_function)(MPI_Comm *comm, int *code, ...);
typedef void (MPI_File_errhandler_function)(MPI_File *file, int *code, ...);
typedef void (MPI_Win_errhandler_function)(MPI_Win *win, int *code, ...);
typedef void (MPI_Session_errhandler_function)(MPI_Session *session, int *code, ...);
typedef void (MPI_T_event_cb_function)(MPI_T_event_instance instance, MPI_T_event_registration registration,
    MPI_T_cb_safety safety, void *state);
typedef void (MPI_T_event_free_cb_function)(MPI_T_event_registration registration, MPI_T_cb_safety safety,
    void *state);
typedef void (MPI_T_event_dropped_cb_function)(MPI_Count n, MPI_T_event_registration registration, int source,
    MPI_T_cb_safety safety, void *state);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
#define MPI_NULL_COPY_FN                       ((MPI_Copy_function *)0)
#define MPI_DUP_FN                             ((MPI_Copy_function *)1)
#define MPI_NULL_DELETE_FN                     ((MPI_Delete_function *)0)
#define MPI_COMM_NULL_COPY_FN                  ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_DUP_FN                        ((MPI_Comm_copy_attr_function *)1)
#define MPI_COMM_NULL_DELETE_FN                ((MPI_Comm_delete_attr_function *)0)
#define MPI_TYPE_NULL_COPY_FN                  ((MPI_Type_copy_attr_function *)0)
#define MPI_TYPE_DUP_FN                        ((MPI_Type_copy_attr_function *)1)
#define MPI_TYPE_NULL_DELETE_FN                ((MPI_Type_delete_attr_function *)0)
#define MPI_WIN_NULL_COPY_FN                   ((MPI_Win_copy_attr_function *)0)
#define MPI_WIN_DUP_FN                         ((MPI_Win_copy_attr_function *)1)
#define MPI_WIN_NULL_DELETE_FN                 ((MPI_Win_delete_attr_function *)0)
#define MPI_CONVERSION_FN_NULL                 ((MPI_Datarep_conversion_function *)0)
#define MPI_CONVERSION_FN_NULL_C               ((MPI_Datarep_conversion_function_c *)0)

/* Point-to-point communication */

int MPI_Send(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Send_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Bsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Bsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Ssend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Ssend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Rsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Rsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Recv(void *buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Recv_c(void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *n);
int MPI_Get_count_c(const MPI_Status *status, MPI_Datatype type, MPI_Count *n);
int MPI_Status_get_source(const MPI_Status *status, int *source);
int MPI_Status_get_tag(const MPI_Status *status, int *tag);
int MPI_Status_get_error(const MPI_Status *status, int *error);
int MPI_Buffer_attach(void *buf, int size);
int MPI_Buffer_attach_c(void *buf, MPI_Count size);
int MPI_Buffer_detach(void *buf, int *size);
int MPI_Buffer_detach_c(void *buf, MPI_Count *size);
int MPI_Buffer_flush(void);
int MPI_Buffer_iflush(MPI_Request *request);
int MPI_Comm_attach_buffer(MPI_Comm comm, void *buf, int size);
int MPI_Comm_attach_buffer_c(MPI_Comm comm, void *buf, MPI_Count size);
int MPI_Comm_detach_buffer(MPI_Comm comm, void *buf, int *size);
int MPI_Comm_detach_buffer_c(MPI_Comm comm, void *buf, MPI_Count *size);
int MPI_Comm_flush_buffer(MPI_Comm comm);
int MPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request);
int MPI_Session_attach_buffer(MPI_Session session, void *buf, int size);
int MPI_Session_attach_buffer_c(MPI_Session session, void *buf, MPI_Count size);
int MPI_Session_detach_buffer(MPI_Session session, void *buf, int *size);
int MPI_Session_detach_buffer_c(MPI_Session session, void *buf, MPI_Count *size);
int MPI_Session_flush_buffer(MPI_Session session);
int MPI_Session_iflush_buffer(MPI_Session session, MPI_Request *request);
int MPI_Isend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Isend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Ibsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Ibsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Issend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Issend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Irsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Irsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Irecv(void *buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Irecv_c(void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Wait(MPI_Request *request, MPI_Status *status);
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int MPI_Request_free(MPI_Request *request);
int MPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status);
int MPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]);
int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Waitsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int MPI_Testsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);
int MPI_Request_get_status_any(int n, const MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int MPI_Request_get_status_all(int n, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Request_get_status_some(int n, const MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status);
int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status);
int MPI_Mrecv(void *buf, int n, MPI_Datatype type, MPI_Message *message, MPI_Status *status);
int MPI_Mrecv_c(void *buf, MPI_Count n, MPI_Datatype type, MPI_Message *message, MPI_Status *status);
int MPI_Imrecv(void *buf, int n, MPI_Datatype type, MPI_Message *message, MPI_Request *request);
int MPI_Imrecv_c(void *buf, MPI_Count n, MPI_Datatype type, MPI_Message *message, MPI_Request *request);
int MPI_Cancel(MPI_Request *request);
int MPI_Test_cancelled(const MPI_Status *status, int *flag);
int MPI_Send_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Send_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Bsend_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Bsend_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Ssend_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Ssend_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Rsend_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Rsend_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Recv_init(void *buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Recv_init_c(void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm,
    MPI_Request *request);
int MPI_Start(MPI_Request *request);
int MPI_Startall(int n, MPI_Request requests[]);
int MPI_Sendrecv(const void *send, int send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv, int recv_n,
    MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Status *status);
int MPI_Sendrecv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Status *status);
int MPI_Sendrecv_replace(void *buf, int n, MPI_Datatype type, int dest, int send_tag, int source, int recv_tag,
    MPI_Comm comm, MPI_Status *status);
int MPI_Sendrecv_replace_c(void *buf, MPI_Count n, MPI_Datatype type, int dest, int send_tag, int source,
    int recv_tag, MPI_Comm comm, MPI_Status *status);
int MPI_Isendrecv(const void *send, int send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv,
    int recv_n, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Request *request);
int MPI_Isendrecv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Request *request);
int MPI_Isendrecv_replace(void *buf, int n, MPI_Datatype type, int dest, int send_tag, int source, int recv_tag,
    MPI_Comm comm, MPI_Request *request);
int MPI_Isendrecv_replace_c(void *buf, MPI_Count n, MPI_Datatype type, int dest, int send_tag, int source,
    int recv_tag, MPI_Comm comm, MPI_Request *request);

/* Partitioned communication */

int MPI_Psend_init(const void *buf, int partitions, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Precv_init(void *buf, int partitions, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Pready(int partition, MPI_Request request);
int MPI_Pready_range(int low, int high, MPI_Request request);
int MPI_Pready_list(int length, const int partitions[], MPI_Request request);
int MPI_Parrived(MPI_Request request, int partition, int *flag);

/* Datatypes */

int MPI_Type_contiguous(int n, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_contiguous_c(MPI_Count n, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_vector(int n, int length, int stride, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_vector_c(MPI_Count n, MPI_Count length, MPI_Count stride, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_create_hvector(int n, int length, MPI_Aint stride, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_create_hvector_c(MPI_Count n, MPI_Count length, MPI_Count stride, MPI_Datatype type,
    MPI_Datatype *new_type);
int MPI_Type_indexed(int n, const int lengths[], const int places[], MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_indexed_c(MPI_Count n, const MPI_Count lengths[], const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int MPI_Type_create_hindexed(int n, const int lengths[], const MPI_Aint places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int MPI_Type_create_hindexed_c(MPI_Count n, const MPI_Count lengths[], const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int MPI_Type_create_indexed_block(int n, int length, const int places[], MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_create_indexed_block_c(MPI_Count n, MPI_Count length, const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int MPI_Type_create_hindexed_block(int n, int length, const MPI_Aint places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int MPI_Type_create_hindexed_block_c(MPI_Count n, MPI_Count length, const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int MPI_Type_create_struct(int n, const int lengths[], const MPI_Aint places[], const MPI_Datatype types[],
    MPI_Datatype *new_type);
int MPI_Type_create_struct_c(MPI_Count n, const MPI_Count lengths[], const MPI_Count places[],
    const MPI_Datatype types[], MPI_Datatype *new_type);
int MPI_Type_create_subarray(int dims_n, const int sizes[], const int subsizes[], const int starts[], int order,
    MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_create_subarray_c(int dims_n, const MPI_Count sizes[], const MPI_Count subsizes[],
    const MPI_Count starts[], int order, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_create_darray(int size, int rank, int dims_n, const int sizes[], const int kinds[],
    const int arguments[], const int grid[], int order, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Type_create_darray_c(int size, int rank, int dims_n, const MPI_Count sizes[], const int kinds[],
    const int arguments[], const int grid[], int order, MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Get_address(const void *place, MPI_Aint *address);
MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint disp);
MPI_Aint MPI_Aint_diff(MPI_Aint to, MPI_Aint from);
int MPI_Type_size(MPI_Datatype type, int *size);
int MPI_Type_size_c(MPI_Datatype type, MPI_Count *size);
int MPI_Type_size_x(MPI_Datatype type, MPI_Count *size); /* deprecated */
int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent);
int MPI_Type_get_extent_c(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent);
int MPI_Type_get_extent_x(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent); /* deprecated */
int MPI_Type_create_resized(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *new_type);
int MPI_Type_create_resized_c(MPI_Datatype type, MPI_Count lb, MPI_Count extent, MPI_Datatype *new_type);
int MPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint *true_lb, MPI_Aint *true_extent);
int MPI_Type_get_true_extent_c(MPI_Datatype type, MPI_Count *true_lb, MPI_Count *true_extent);
int MPI_Type_get_true_extent_x(MPI_Datatype type, MPI_Count *true_lb, MPI_Count *true_extent); /* deprecated */
int MPI_Type_commit(MPI_Datatype *type);
int MPI_Type_free(MPI_Datatype *type);
int MPI_Type_dup(MPI_Datatype type, MPI_Datatype *new_type);
int MPI_Get_elements(const MPI_Status *status, MPI_Datatype type, int *n);
int MPI_Get_elements_c(const MPI_Status *status, MPI_Datatype type, MPI_Count *n);
int MPI_Get_elements_x(const MPI_Status *status, MPI_Datatype type, MPI_Count *n); /* deprecated */
int MPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner);
int MPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses, MPI_Count *counts,
    MPI_Count *types, int *combiner);
int MPI_Type_get_contents(MPI_Datatype type, int max_integers, int max_addresses, int max_datatypes, int integers[],
    MPI_Aint addresses[], MPI_Datatype types[]);
int MPI_Type_get_contents_c(MPI_Datatype type, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_counts,
    MPI_Count max_datatypes, int integers[], MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[]);
int MPI_Type_create_f90_real(int p, int r, MPI_Datatype *new_type);
int MPI_Type_create_f90_complex(int p, int r, MPI_Datatype *new_type);
int MPI_Type_create_f90_integer(int r, MPI_Datatype *new_type);
int MPI_Type_match_size(int type_class, int size, MPI_Datatype *type);
int MPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type);
int MPI_Pack(const void *from, int n, MPI_Datatype type, void *to, int size, int *position, MPI_Comm comm);
int MPI_Pack_c(const void *from, MPI_Count n, MPI_Datatype type, void *to, MPI_Count size, MPI_Count *position,
    MPI_Comm comm);
int MPI_Unpack(const void *from, int size, int *position, void *to, int n, MPI_Datatype type, MPI_Comm comm);
int MPI_Unpack_c(const void *from, MPI_Count size, MPI_Count *position, void *to, MPI_Count n, MPI_Datatype type,
    MPI_Comm comm);
int MPI_Pack_size(int n, MPI_Datatype type, MPI_Comm comm, int *size);
int MPI_Pack_size_c(MPI_Count n, MPI_Datatype type, MPI_Comm comm, MPI_Count *size);
int MPI_Pack_external(const char *datarep, const void *from, int n, MPI_Datatype type, void *to, MPI_Aint size,
    MPI_Aint *position);
int MPI_Pack_external_c(const char *datarep, const void *from, MPI_Count n, MPI_Datatype type, void *to,
    MPI_Count size, MPI_Count *position);
int MPI_Unpack_external(const char *datarep, const void *from, MPI_Aint size, MPI_Aint *position, void *to, int n,
    MPI_Datatype type);
int MPI_Unpack_external_c(const char *datarep, const void *from, MPI_Count size, MPI_Count *position, void *to,
    MPI_Count n, MPI_Datatype type);
int MPI_Pack_external_size(const char *datarep, int n, MPI_Datatype type, MPI_Aint *size);
int MPI_Pack_external_size_c(const char *datarep, MPI_Count n, MPI_Datatype type, MPI_Count *size);

/* Collective communication */

int MPI_Barrier(MPI_Comm comm);
int MPI_Bcast(void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Bcast_c(void *buf, MPI_Count n, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Gather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    int root, MPI_Comm comm);
int MPI_Gather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm);
int MPI_Gatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[], const int at[],
    MPI_Datatype recv_type, int root, MPI_Comm comm);
int MPI_Gatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, const MPI_Count recv_n[],
    const MPI_Aint at[], MPI_Datatype recv_type, int root, MPI_Comm comm);
int MPI_Scatter(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    int root, MPI_Comm comm);
int MPI_Scatter_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm);
int MPI_Scatterv(const void *send, const int send_n[], const int at[], MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm);
int MPI_Scatterv_c(const void *send, const MPI_Count send_n[], const MPI_Aint at[], MPI_Datatype send_type,
    void *recv, MPI_Count recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm);
int MPI_Allgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Allgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Allgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Allgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, const MPI_Count recv_n[],
    const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Alltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    MPI_Comm comm);
int MPI_Alltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Alltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type, void *recv,
    const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Alltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[], MPI_Datatype send_type,
    void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Alltoallw(const void *send, const int send_n[], const int send_at[], const MPI_Datatype send_types[],
    void *recv, const int recv_n[], const int recv_at[], const MPI_Datatype recv_types[], MPI_Comm comm);
int MPI_Alltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm);
int MPI_Reduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int MPI_Reduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int MPI_Allreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Allreduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Reduce_scatter_block(const void *send, void *recv, int recv_n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Reduce_scatter_block_c(const void *send, void *recv, MPI_Count recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm);
int MPI_Reduce_scatter(const void *send, void *recv, const int recv_n[], MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Reduce_scatter_c(const void *send, void *recv, const MPI_Count recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm);
int MPI_Scan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Scan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Exscan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Exscan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op);
int MPI_Op_create_c(MPI_User_function_c *function, int commutes, MPI_Op *op);
int MPI_Op_free(MPI_Op *op);
int MPI_Op_commutative(MPI_Op op, int *commutes);
int MPI_Reduce_local(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op);
int MPI_Reduce_local_c(const void *from, void *to, MPI_Count n, MPI_Datatype type, MPI_Op op);
int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int MPI_Ibcast(void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Ibcast_c(void *buf, MPI_Count n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Igather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    int root, MPI_Comm comm, MPI_Request *request);
int MPI_Igather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Igatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[], const int at[],
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Igatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, const MPI_Count recv_n[],
    const MPI_Aint at[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Iscatter(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    int root, MPI_Comm comm, MPI_Request *request);
int MPI_Iscatter_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Iscatterv(const void *send, const int send_n[], const int at[], MPI_Datatype send_type, void *recv,
    int recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Iscatterv_c(const void *send, const MPI_Count send_n[], const MPI_Aint at[], MPI_Datatype send_type,
    void *recv, MPI_Count recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Iallgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Iallgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Iallgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Iallgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ialltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ialltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ialltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type, void *recv,
    const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ialltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[], MPI_Datatype send_type,
    void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type, MPI_Comm comm,
    MPI_Request *request);
int MPI_Ialltoallw(const void *send, const int send_n[], const int send_at[], const MPI_Datatype send_types[],
    void *recv, const int recv_n[], const int recv_at[], const MPI_Datatype recv_types[], MPI_Comm comm,
    MPI_Request *request);
int MPI_Ialltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Request *request);
int MPI_Ireduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
    MPI_Request *request);
int MPI_Ireduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
    MPI_Request *request);
int MPI_Iallreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int MPI_Iallreduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int MPI_Ireduce_scatter_block(const void *send, void *recv, int recv_n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int MPI_Ireduce_scatter_block_c(const void *send, void *recv, MPI_Count recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Request *request);
int MPI_Ireduce_scatter(const void *send, void *recv, const int recv_n[], MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int MPI_Ireduce_scatter_c(const void *send, void *recv, const MPI_Count recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Request *request);
int MPI_Iscan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request);
int MPI_Iscan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int MPI_Iexscan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int MPI_Iexscan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Bcast_init(void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Bcast_init_c(void *buf, MPI_Count n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Gather_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Gather_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Gatherv_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Gatherv_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Scatter_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Scatter_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Scatterv_init(const void *send, const int send_n[], const int at[], MPI_Datatype send_type, void *recv,
    int recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Scatterv_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint at[], MPI_Datatype send_type,
    void *recv, MPI_Count recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Allgather_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Allgather_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Allgatherv_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Allgatherv_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Alltoall_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Alltoall_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Alltoallv_init(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type, void *recv,
    const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Alltoallv_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[], MPI_Datatype send_type,
    void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Alltoallw_init(const void *send, const int send_n[], const int send_at[], const MPI_Datatype send_types[],
    void *recv, const int recv_n[], const int recv_at[], const MPI_Datatype recv_types[], MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Alltoallw_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Reduce_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Reduce_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, int root,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Allreduce_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Allreduce_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Reduce_scatter_block_init(const void *send, void *recv, int recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Reduce_scatter_block_init_c(const void *send, void *recv, MPI_Count recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Reduce_scatter_init(const void *send, void *recv, const int recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Reduce_scatter_init_c(const void *send, void *recv, const MPI_Count recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Scan_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Scan_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int MPI_Exscan_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Exscan_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);

/* Groups and communicators */

int MPI_Group_size(MPI_Group group, int *size);
int MPI_Group_rank(MPI_Group group, int *rank);
int MPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks[], MPI_Group group2, int ranks2[]);
int MPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result);
int MPI_Comm_group(MPI_Comm comm, MPI_Group *group);
int MPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *new_group);
int MPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *new_group);
int MPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *new_group);
int MPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *new_group);
int MPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *new_group);
int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *new_group);
int MPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *new_group);
int MPI_Group_from_session_pset(MPI_Session session, const char *name, MPI_Group *new_group);
int MPI_Group_free(MPI_Group *group);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *new_comm);
int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new_comm);
int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *new_comm, MPI_Request *request);
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new_comm, MPI_Request *request);
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *new_comm);
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *new_comm);
int MPI_Comm_create_from_group(MPI_Group group, const char *name, MPI_Info info, MPI_Errhandler errhandler,
    MPI_Comm *new_comm);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *new_comm);
int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *new_comm);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info);
int MPI_Comm_get_info(MPI_Comm comm, MPI_Info *info);
int MPI_Comm_test_inter(MPI_Comm comm, int *flag);
int MPI_Comm_remote_size(MPI_Comm comm, int *size);
int MPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group);
int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
    MPI_Comm *new_comm);
int MPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
    int remote_leader, const char *name, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *new_comm);
int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *new_comm);

/* Attributes and names */

int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete_fn, int *key,
    void *state);
int MPI_Comm_free_keyval(int *key);
int MPI_Comm_set_attr(MPI_Comm comm, int key, void *value);
int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag);
int MPI_Comm_delete_attr(MPI_Comm comm, int key);
int MPI_Win_create_keyval(MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *delete_fn, int *key,
    void *state);
int MPI_Win_free_keyval(int *key);
int MPI_Win_set_attr(MPI_Win win, int key, void *value);
int MPI_Win_get_attr(MPI_Win win, int key, void *value, int *flag);
int MPI_Win_delete_attr(MPI_Win win, int key);
int MPI_Type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *delete_fn, int *key,
    void *state);
int MPI_Type_free_keyval(int *key);
int MPI_Type_set_attr(MPI_Datatype type, int key, void *value);
int MPI_Type_get_attr(MPI_Datatype type, int key, void *value, int *flag);
int MPI_Type_delete_attr(MPI_Datatype type, int key);
int MPI_Comm_set_name(MPI_Comm comm, const char *name);
int MPI_Comm_get_name(MPI_Comm comm, char *name, int *length);
int MPI_Type_set_name(MPI_Datatype type, const char *name);
int MPI_Type_get_name(MPI_Datatype type, char *name, int *length);
int MPI_Win_set_name(MPI_Win win, const char *name);
int MPI_Win_get_name(MPI_Win win, char *name, int *length);

/* Topologies */

int MPI_Cart_create(MPI_Comm comm, int dims_n, const int dims[], const int periods[], int reorder, MPI_Comm *new_comm);
int MPI_Dims_create(int nodes, int dims_n, int dims[]);
int MPI_Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *new_comm);
int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int sources_n, const int sources[], const int *source_weights,
    int dests_n, const int dests[], const int *dest_weights, MPI_Info info, int reorder, MPI_Comm *new_comm);
int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[], const int dests[],
    const int *weights, MPI_Info info, int reorder, MPI_Comm *new_comm);
int MPI_Topo_test(MPI_Comm comm, int *status);
int MPI_Graphdims_get(MPI_Comm comm, int *nodes, int *edges);
int MPI_Graph_get(MPI_Comm comm, int max_index, int max_edges, int index[], int edges[]);
int MPI_Cartdim_get(MPI_Comm comm, int *dims_n);
int MPI_Cart_get(MPI_Comm comm, int max_dims, int dims[], int periods[], int coords[]);
int MPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank);
int MPI_Cart_coords(MPI_Comm comm, int rank, int max_dims, int coords[]);
int MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *n);
int MPI_Graph_neighbors(MPI_Comm comm, int rank, int max_n, int neighbors[]);
int MPI_Dist_graph_neighbors_count(MPI_Comm comm, int *sources_n, int *dests_n, int *weighted);
int MPI_Dist_graph_neighbors(MPI_Comm comm, int max_sources, int sources[], int *source_weights, int max_dests,
    int dests[], int *dest_weights);
int MPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *source, int *dest);
int MPI_Cart_sub(MPI_Comm comm, const int kept[], MPI_Comm *new_comm);
int MPI_Cart_map(MPI_Comm comm, int dims_n, const int dims[], const int periods[], int *rank);
int MPI_Graph_map(MPI_Comm comm, int nodes, const int index[], const int edges[], int *rank);
int MPI_Neighbor_allgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Neighbor_allgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Neighbor_allgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Neighbor_allgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Neighbor_alltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Neighbor_alltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Neighbor_alltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type,
    void *recv, const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Neighbor_alltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    MPI_Datatype send_type, void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type,
    MPI_Comm comm);
int MPI_Neighbor_alltoallw(const void *send, const int send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const int recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm);
int MPI_Neighbor_alltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm);
int MPI_Ineighbor_allgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_allgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_allgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_allgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_alltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_alltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_alltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type,
    void *recv, const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_alltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    MPI_Datatype send_type, void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type,
    MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_alltoallw(const void *send, const int send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const int recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Request *request);
int MPI_Ineighbor_alltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Request *request);
int MPI_Neighbor_allgather_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_allgather_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_allgatherv_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_allgatherv_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Neighbor_alltoall_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_alltoall_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_alltoallv_init(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type,
    void *recv, const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int MPI_Neighbor_alltoallv_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    MPI_Datatype send_type, void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_alltoallw_init(const void *send, const int send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const int recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Neighbor_alltoallw_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* Environment */

int MPI_Get_version(int *version, int *subversion);
int MPI_Get_library_version(char *version, int *length);
int MPI_Get_processor_name(char *name, int *length);
int MPI_Get_hw_resource_info(MPI_Info *info);
int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *base);
int MPI_Free_mem(void *base);
double MPI_Wtime(void);
double MPI_Wtick(void);

/* Error handling */

int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler);
int MPI_Win_create_errhandler(MPI_Win_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler);
int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler);
int MPI_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler);
int MPI_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler);
int MPI_Session_create_errhandler(MPI_Session_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler);
int MPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler);
int MPI_Errhandler_free(MPI_Errhandler *errhandler);
int MPI_Error_string(int code, char *string, int *length);
int MPI_Error_class(int code, int *error_class);
int MPI_Add_error_class(int *error_class);
int MPI_Remove_error_class(int error_class);
int MPI_Add_error_code(int error_class, int *code);
int MPI_Remove_error_code(int code);
int MPI_Add_error_string(int code, const char *string);
int MPI_Remove_error_string(int code);
int MPI_Comm_call_errhandler(MPI_Comm comm, int code);
int MPI_Win_call_errhandler(MPI_Win win, int code);
int MPI_File_call_errhandler(MPI_File file, int code);
int MPI_Session_call_errhandler(MPI_Session session, int code);

/* Info */

int MPI_Info_create(MPI_Info *info);
int MPI_Info_create_env(int argc, char *argv[], MPI_Info *info);
int MPI_Info_set(MPI_Info info, const char *key, const char *value);
int MPI_Info_delete(MPI_Info info, const char *key);
int MPI_Info_get_string(MPI_Info info, const char *key, int *length, char *value, int *flag);
int MPI_Info_get_nkeys(MPI_Info info, int *n);
int MPI_Info_get_nthkey(MPI_Info info, int n, char *key);
int MPI_Info_dup(MPI_Info info, MPI_Info *new_info);
int MPI_Info_free(MPI_Info *info);

/* Start, end and sessions */

int MPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Initialized(int *flag);
int MPI_Finalize(void);
int MPI_Finalized(int *flag);
int MPI_Abort(MPI_Comm comm, int code);
int MPI_Query_thread(int *provided);
int MPI_Is_thread_main(int *flag);
int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session);
int MPI_Session_finalize(MPI_Session *session);
int MPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int *n);
int MPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *length, char *name);
int MPI_Session_get_info(MPI_Session session, MPI_Info *info);
int MPI_Session_get_pset_info(MPI_Session session, const char *name, MPI_Info *info);

/* Dynamic processes */

int MPI_Comm_spawn(const char *command, char *argv[], int processes, MPI_Info info, int root, MPI_Comm comm,
    MPI_Comm *new_comm, int codes[]);
int MPI_Comm_spawn_multiple(int n, char *commands[], char **arguments[], const int processes[],
    const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *new_comm, int codes[]);
int MPI_Comm_get_parent(MPI_Comm *parent);
int MPI_Open_port(MPI_Info info, char *port);
int MPI_Close_port(const char *port);
int MPI_Comm_accept(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *new_comm);
int MPI_Comm_connect(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *new_comm);
int MPI_Publish_name(const char *service, MPI_Info info, const char *port);
int MPI_Unpublish_name(const char *service, MPI_Info info, const char *port);
int MPI_Lookup_name(const char *service, MPI_Info info, char *port);
int MPI_Comm_disconnect(MPI_Comm *comm);
int MPI_Comm_join(int fd, MPI_Comm *new_comm);

/* Windows */

int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win);
int MPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win);
int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int MPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *unit, void *base);
int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *unit, void *base);
int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win);
int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size);
int MPI_Win_detach(MPI_Win win, const void *base);
int MPI_Win_free(MPI_Win *win);
int MPI_Win_get_group(MPI_Win win, MPI_Group *group);
int MPI_Win_set_info(MPI_Win win, MPI_Info info);
int MPI_Win_get_info(MPI_Win win, MPI_Info *info);
int MPI_Put(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win);
int MPI_Put_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Win win);
int MPI_Get(void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win);
int MPI_Get_c(void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, MPI_Count target_n,
    MPI_Datatype target_type, MPI_Win win);
int MPI_Accumulate(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int MPI_Accumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int MPI_Get_accumulate(const void *origin, int origin_n, MPI_Datatype origin_type, void *result, int result_n,
    MPI_Datatype result_type, int target, MPI_Aint at, int target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int MPI_Get_accumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, void *result,
    MPI_Count result_n, MPI_Datatype result_type, int target, MPI_Aint at, MPI_Count target_n,
    MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int MPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
    MPI_Win win);
int MPI_Compare_and_swap(const void *origin, const void *compare, void *result, MPI_Datatype type, int target,
    MPI_Aint at, MPI_Win win);
int MPI_Rput(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int MPI_Rput_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int MPI_Rget(void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int MPI_Rget_c(void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int MPI_Raccumulate(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
int MPI_Raccumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
int MPI_Rget_accumulate(const void *origin, int origin_n, MPI_Datatype origin_type, void *result, int result_n,
    MPI_Datatype result_type, int target, MPI_Aint at, int target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
    MPI_Request *request);
int MPI_Rget_accumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, void *result,
    MPI_Count result_n, MPI_Datatype result_type, int target, MPI_Aint at, MPI_Count target_n,
    MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
int MPI_Win_fence(int assertion, MPI_Win win);
int MPI_Win_start(MPI_Group group, int assertion, MPI_Win win);
int MPI_Win_complete(MPI_Win win);
int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win);
int MPI_Win_wait(MPI_Win win);
int MPI_Win_test(MPI_Win win, int *flag);
int MPI_Win_lock(int lock_type, int rank, int assertion, MPI_Win win);
int MPI_Win_lock_all(int assertion, MPI_Win win);
int MPI_Win_unlock(int rank, MPI_Win win);
int MPI_Win_unlock_all(MPI_Win win);
int MPI_Win_flush(int rank, MPI_Win win);
int MPI_Win_flush_all(MPI_Win win);
int MPI_Win_flush_local(int rank, MPI_Win win);
int MPI_Win_flush_local_all(MPI_Win win);
int MPI_Win_sync(MPI_Win win);

/* Generalized requests and statuses */

int MPI_Grequest_start(MPI_Grequest_query_function *query, MPI_Grequest_free_function *free,
    MPI_Grequest_cancel_function *cancel, void *state, MPI_Request *request);
int MPI_Grequest_complete(MPI_Request request);
int MPI_Status_set_elements(MPI_Status *status, MPI_Datatype type, int n);
int MPI_Status_set_elements_c(MPI_Status *status, MPI_Datatype type, MPI_Count n);
int MPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype type, MPI_Count n); /* deprecated */
int MPI_Status_set_cancelled(MPI_Status *status, int flag);
int MPI_Status_set_source(MPI_Status *status, int source);
int MPI_Status_set_tag(MPI_Status *status, int tag);
int MPI_Status_set_error(MPI_Status *status, int error);

/* Files */

int MPI_File_open(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *file);
int MPI_File_close(MPI_File *file);
int MPI_File_delete(const char *name, MPI_Info info);
int MPI_File_set_size(MPI_File file, MPI_Offset size);
int MPI_File_preallocate(MPI_File file, MPI_Offset size);
int MPI_File_get_size(MPI_File file, MPI_Offset *size);
int MPI_File_get_group(MPI_File file, MPI_Group *group);
int MPI_File_get_amode(MPI_File file, int *amode);
int MPI_File_set_info(MPI_File file, MPI_Info info);
int MPI_File_get_info(MPI_File file, MPI_Info *info);
int MPI_File_set_view(MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
    MPI_Info info);
int MPI_File_get_view(MPI_File file, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep);
int MPI_File_read_at(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_read_at_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int MPI_File_read_at_all(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_read_at_all_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int MPI_File_write_at(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_at_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int MPI_File_write_at_all(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type,
    MPI_Status *status);
int MPI_File_write_at_all_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int MPI_File_iread_at(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iread_at_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int MPI_File_iread_at_all(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iread_at_all_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int MPI_File_iwrite_at(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type,
    MPI_Request *request);
int MPI_File_iwrite_at_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int MPI_File_iwrite_at_all(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type,
    MPI_Request *request);
int MPI_File_iwrite_at_all_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int MPI_File_read(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_read_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_read_all(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_read_all_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_all(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_all_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_iread(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iread_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iread_all(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iread_all_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iwrite(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iwrite_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iwrite_all(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iwrite_all_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int MPI_File_seek(MPI_File file, MPI_Offset offset, int whence);
int MPI_File_get_position(MPI_File file, MPI_Offset *offset);
int MPI_File_get_byte_offset(MPI_File file, MPI_Offset offset, MPI_Offset *disp);
int MPI_File_read_shared(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_read_shared_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_shared(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_shared_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_iread_shared(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iread_shared_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iwrite_shared(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Request *request);
int MPI_File_iwrite_shared_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int MPI_File_read_ordered(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_read_ordered_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_ordered(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int MPI_File_write_ordered_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int MPI_File_seek_shared(MPI_File file, MPI_Offset offset, int whence);
int MPI_File_get_position_shared(MPI_File file, MPI_Offset *offset);
int MPI_File_read_at_all_begin(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type);
int MPI_File_read_at_all_begin_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type);
int MPI_File_read_at_all_end(MPI_File file, void *buf, MPI_Status *status);
int MPI_File_write_at_all_begin(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type);
int MPI_File_write_at_all_begin_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type);
int MPI_File_write_at_all_end(MPI_File file, const void *buf, MPI_Status *status);
int MPI_File_read_all_begin(MPI_File file, void *buf, int n, MPI_Datatype type);
int MPI_File_read_all_begin_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type);
int MPI_File_read_all_end(MPI_File file, void *buf, MPI_Status *status);
int MPI_File_write_all_begin(MPI_File file, const void *buf, int n, MPI_Datatype type);
int MPI_File_write_all_begin_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type);
int MPI_File_write_all_end(MPI_File file, const void *buf, MPI_Status *status);
int MPI_File_read_ordered_begin(MPI_File file, void *buf, int n, MPI_Datatype type);
int MPI_File_read_ordered_begin_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type);
int MPI_File_read_ordered_end(MPI_File file, void *buf, MPI_Status *status);
int MPI_File_write_ordered_begin(MPI_File file, const void *buf, int n, MPI_Datatype type);
int MPI_File_write_ordered_begin_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type);
int MPI_File_write_ordered_end(MPI_File file, const void *buf, MPI_Status *status);
int MPI_File_get_type_extent(MPI_File file, MPI_Datatype type, MPI_Aint *extent);
int MPI_File_get_type_extent_c(MPI_File file, MPI_Datatype type, MPI_Count *extent);
int MPI_Register_datarep(const char *datarep, MPI_Datarep_conversion_function *read,
    MPI_Datarep_conversion_function *write, MPI_Datarep_extent_function *extent, void *state);
int MPI_Register_datarep_c(const char *datarep, MPI_Datarep_conversion_function_c *read,
    MPI_Datarep_conversion_function_c *write, MPI_Datarep_extent_function *extent, void *state);
int MPI_File_set_atomicity(MPI_File file, int flag);
int MPI_File_get_atomicity(MPI_File file, int *flag);
int MPI_File_sync(MPI_File file);

/* Tools */

int MPI_Pcontrol(int level, ...);
int MPI_T_init_thread(int required, int *provided);
int MPI_T_finalize(void);
int MPI_T_enum_get_info(MPI_T_enum values, int *n, char *name, int *name_length);
int MPI_T_enum_get_item(MPI_T_enum values, int index, int *value, char *name, int *name_length);
int MPI_T_cvar_get_num(int *n);
int MPI_T_cvar_get_info(int index, char *name, int *name_length, int *verbosity, MPI_Datatype *type,
    MPI_T_enum *values, char *text, int *text_length, int *bind, int *scope);
int MPI_T_cvar_get_index(const char *name, int *index);
int MPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *handle, int *n);
int MPI_T_cvar_handle_free(MPI_T_cvar_handle *handle);
int MPI_T_cvar_read(MPI_T_cvar_handle handle, void *buf);
int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buf);
int MPI_T_pvar_get_num(int *n);
int MPI_T_pvar_get_info(int index, char *name, int *name_length, int *verbosity, int *var_class, MPI_Datatype *type,
    MPI_T_enum *values, char *text, int *text_length, int *bind, int *readonly, int *continuous, int *atomic);
int MPI_T_pvar_get_index(const char *name, int var_class, int *index);
int MPI_T_pvar_session_create(MPI_T_pvar_session *session);
int MPI_T_pvar_session_free(MPI_T_pvar_session *session);
int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void *object, MPI_T_pvar_handle *handle, int *n);
int MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle);
int MPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int MPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf);
int MPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf);
int MPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int MPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf);
int MPI_T_source_get_num(int *n);
int MPI_T_source_get_info(int index, char *name, int *name_length, char *text, int *text_length,
    MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info);
int MPI_T_source_get_timestamp(int index, MPI_Count *time);
int MPI_T_event_get_num(int *events);
int MPI_T_event_get_info(int index, char *name, int *name_length, int *verbosity, MPI_Datatype types[],
    MPI_Aint places[], int *elements, MPI_T_enum *values, MPI_Info *info, char *text, int *text_length, int *bind);
int MPI_T_event_get_index(const char *name, int *index);
int MPI_T_event_handle_alloc(int index, void *object, MPI_Info info, MPI_T_event_registration *registration);
int MPI_T_event_handle_set_info(MPI_T_event_registration registration, MPI_Info info);
int MPI_T_event_handle_get_info(MPI_T_event_registration registration, MPI_Info *info);
int MPI_T_event_register_callback(MPI_T_event_registration registration, MPI_T_cb_safety safety, MPI_Info info,
    void *state, MPI_T_event_cb_function *callback);
int MPI_T_event_callback_set_info(MPI_T_event_registration registration, MPI_T_cb_safety safety, MPI_Info info);
int MPI_T_event_callback_get_info(MPI_T_event_registration registration, MPI_T_cb_safety safety, MPI_Info *info);
int MPI_T_event_handle_free(MPI_T_event_registration registration, void *state,
    MPI_T_event_free_cb_function *callback);
int MPI_T_event_set_dropped_handler(MPI_T_event_registration registration, MPI_T_event_dropped_cb_function *callback);
int MPI_T_event_read(MPI_T_event_instance instance, int element, void *buf);
int MPI_T_event_copy(MPI_T_event_instance instance, void *buf);
int MPI_T_event_get_timestamp(MPI_T_event_instance instance, MPI_Count *time);
int MPI_T_event_get_source(MPI_T_event_instance instance, int *index);
int MPI_T_category_get_num(int *n);
int MPI_T_category_get_info(int index, char *name, int *name_length, char *text, int *text_length, int *cvars,
    int *pvars, int *categories);
int MPI_T_category_get_num_events(int index, int *events);
int MPI_T_category_get_index(const char *name, int *index);
int MPI_T_category_get_cvars(int index, int n, int indices[]);
int MPI_T_category_get_pvars(int index, int n, int indices[]);
int MPI_T_category_get_events(int index, int n, int indices[]);
int MPI_T_category_get_categories(int index, int n, int indices[]);
int MPI_T_category_changed(int *updates);

/* The binary interface and other languages */

int MPI_Abi_get_version(int *version, int *subversion);
int MPI_Abi_get_info(MPI_Info *info);
int MPI_Abi_get_fortran_info(MPI_Info *info);
int MPI_Abi_set_fortran_info(MPI_Info info);
int MPI_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set);
int MPI_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false);
int MPI_Comm_toint(MPI_Comm comm);
MPI_Comm MPI_Comm_fromint(int value);
int MPI_Errhandler_toint(MPI_Errhandler errhandler);
MPI_Errhandler MPI_Errhandler_fromint(int value);
int MPI_File_toint(MPI_File file);
MPI_File MPI_File_fromint(int value);
int MPI_Group_toint(MPI_Group group);
MPI_Group MPI_Group_fromint(int value);
int MPI_Info_toint(MPI_Info info);
MPI_Info MPI_Info_fromint(int value);
int MPI_Message_toint(MPI_Message message);
MPI_Message MPI_Message_fromint(int value);
int MPI_Op_toint(MPI_Op op);
MPI_Op MPI_Op_fromint(int value);
int MPI_Request_toint(MPI_Request request);
MPI_Request MPI_Request_fromint(int value);
int MPI_Session_toint(MPI_Session session);
MPI_Session MPI_Session_fromint(int value);
int MPI_Type_toint(MPI_Datatype type);
MPI_Datatype MPI_Type_fromint(int value);
int MPI_Win_toint(MPI_Win win);
MPI_Win MPI_Win_fromint(int value);

/* Deprecated */

int MPI_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *delete_fn, int *key, void *state); /* deprecated */
int MPI_Keyval_free(int *key); /* deprecated */
int MPI_Attr_put(MPI_Comm comm, int key, void *value); /* deprecated */
int MPI_Attr_get(MPI_Comm comm, int key, void *value, int *flag); /* deprecated */
int MPI_Attr_delete(MPI_Comm comm, int key); /* deprecated */
int MPI_Info_get(MPI_Info info, const char *key, int length, char *value, int *flag); /* deprecated */
int MPI_Info_get_valuelen(MPI_Info info, const char *key, int *length, int *flag); /* deprecated */

/* The same for tools that define the names above themselves: Point-to-point communication */

int PMPI_Send(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Send_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Bsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Bsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Ssend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Ssend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Rsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Rsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int PMPI_Recv(void *buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Recv_c(void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *n);
int PMPI_Get_count_c(const MPI_Status *status, MPI_Datatype type, MPI_Count *n);
int PMPI_Status_get_source(const MPI_Status *status, int *source);
int PMPI_Status_get_tag(const MPI_Status *status, int *tag);
int PMPI_Status_get_error(const MPI_Status *status, int *error);
int PMPI_Buffer_attach(void *buf, int size);
int PMPI_Buffer_attach_c(void *buf, MPI_Count size);
int PMPI_Buffer_detach(void *buf, int *size);
int PMPI_Buffer_detach_c(void *buf, MPI_Count *size);
int PMPI_Buffer_flush(void);
int PMPI_Buffer_iflush(MPI_Request *request);
int PMPI_Comm_attach_buffer(MPI_Comm comm, void *buf, int size);
int PMPI_Comm_attach_buffer_c(MPI_Comm comm, void *buf, MPI_Count size);
int PMPI_Comm_detach_buffer(MPI_Comm comm, void *buf, int *size);
int PMPI_Comm_detach_buffer_c(MPI_Comm comm, void *buf, MPI_Count *size);
int PMPI_Comm_flush_buffer(MPI_Comm comm);
int PMPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request);
int PMPI_Session_attach_buffer(MPI_Session session, void *buf, int size);
int PMPI_Session_attach_buffer_c(MPI_Session session, void *buf, MPI_Count size);
int PMPI_Session_detach_buffer(MPI_Session session, void *buf, int *size);
int PMPI_Session_detach_buffer_c(MPI_Session session, void *buf, MPI_Count *size);
int PMPI_Session_flush_buffer(MPI_Session session);
int PMPI_Session_iflush_buffer(MPI_Session session, MPI_Request *request);
int PMPI_Isend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Isend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Ibsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Ibsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Issend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Issend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Irsend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Irsend_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Irecv(void *buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Irecv_c(void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Wait(MPI_Request *request, MPI_Status *status);
int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int PMPI_Request_free(MPI_Request *request);
int PMPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status);
int PMPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int PMPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]);
int PMPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]);
int PMPI_Waitsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int PMPI_Testsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);
int PMPI_Request_get_status_any(int n, const MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int PMPI_Request_get_status_all(int n, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
int PMPI_Request_get_status_some(int n, const MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status);
int PMPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status);
int PMPI_Mrecv(void *buf, int n, MPI_Datatype type, MPI_Message *message, MPI_Status *status);
int PMPI_Mrecv_c(void *buf, MPI_Count n, MPI_Datatype type, MPI_Message *message, MPI_Status *status);
int PMPI_Imrecv(void *buf, int n, MPI_Datatype type, MPI_Message *message, MPI_Request *request);
int PMPI_Imrecv_c(void *buf, MPI_Count n, MPI_Datatype type, MPI_Message *message, MPI_Request *request);
int PMPI_Cancel(MPI_Request *request);
int PMPI_Test_cancelled(const MPI_Status *status, int *flag);
int PMPI_Send_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Send_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Bsend_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Bsend_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Ssend_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Ssend_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Rsend_init(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Rsend_init_c(const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Recv_init(void *buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Recv_init_c(void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Start(MPI_Request *request);
int PMPI_Startall(int n, MPI_Request requests[]);
int PMPI_Sendrecv(const void *send, int send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv,
    int recv_n, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Sendrecv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Sendrecv_replace(void *buf, int n, MPI_Datatype type, int dest, int send_tag, int source, int recv_tag,
    MPI_Comm comm, MPI_Status *status);
int PMPI_Sendrecv_replace_c(void *buf, MPI_Count n, MPI_Datatype type, int dest, int send_tag, int source,
    int recv_tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Isendrecv(const void *send, int send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv,
    int recv_n, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Isendrecv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, int dest, int send_tag, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Isendrecv_replace(void *buf, int n, MPI_Datatype type, int dest, int send_tag, int source, int recv_tag,
    MPI_Comm comm, MPI_Request *request);
int PMPI_Isendrecv_replace_c(void *buf, MPI_Count n, MPI_Datatype type, int dest, int send_tag, int source,
    int recv_tag, MPI_Comm comm, MPI_Request *request);

/* The same for tools that define the names above themselves: Partitioned communication */

int PMPI_Psend_init(const void *buf, int partitions, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int PMPI_Precv_init(void *buf, int partitions, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int PMPI_Pready(int partition, MPI_Request request);
int PMPI_Pready_range(int low, int high, MPI_Request request);
int PMPI_Pready_list(int length, const int partitions[], MPI_Request request);
int PMPI_Parrived(MPI_Request request, int partition, int *flag);

/* The same for tools that define the names above themselves: Datatypes */

int PMPI_Type_contiguous(int n, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_contiguous_c(MPI_Count n, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_vector(int n, int length, int stride, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_vector_c(MPI_Count n, MPI_Count length, MPI_Count stride, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_create_hvector(int n, int length, MPI_Aint stride, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_create_hvector_c(MPI_Count n, MPI_Count length, MPI_Count stride, MPI_Datatype type,
    MPI_Datatype *new_type);
int PMPI_Type_indexed(int n, const int lengths[], const int places[], MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_indexed_c(MPI_Count n, const MPI_Count lengths[], const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int PMPI_Type_create_hindexed(int n, const int lengths[], const MPI_Aint places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int PMPI_Type_create_hindexed_c(MPI_Count n, const MPI_Count lengths[], const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int PMPI_Type_create_indexed_block(int n, int length, const int places[], MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_create_indexed_block_c(MPI_Count n, MPI_Count length, const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int PMPI_Type_create_hindexed_block(int n, int length, const MPI_Aint places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int PMPI_Type_create_hindexed_block_c(MPI_Count n, MPI_Count length, const MPI_Count places[], MPI_Datatype type,
    MPI_Datatype *new_type);
int PMPI_Type_create_struct(int n, const int lengths[], const MPI_Aint places[], const MPI_Datatype types[],
    MPI_Datatype *new_type);
int PMPI_Type_create_struct_c(MPI_Count n, const MPI_Count lengths[], const MPI_Count places[],
    const MPI_Datatype types[], MPI_Datatype *new_type);
int PMPI_Type_create_subarray(int dims_n, const int sizes[], const int subsizes[], const int starts[], int order,
    MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_create_subarray_c(int dims_n, const MPI_Count sizes[], const MPI_Count subsizes[],
    const MPI_Count starts[], int order, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_create_darray(int size, int rank, int dims_n, const int sizes[], const int kinds[],
    const int arguments[], const int grid[], int order, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Type_create_darray_c(int size, int rank, int dims_n, const MPI_Count sizes[], const int kinds[],
    const int arguments[], const int grid[], int order, MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Get_address(const void *place, MPI_Aint *address);
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp);
MPI_Aint PMPI_Aint_diff(MPI_Aint to, MPI_Aint from);
int PMPI_Type_size(MPI_Datatype type, int *size);
int PMPI_Type_size_c(MPI_Datatype type, MPI_Count *size);
int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size); /* deprecated */
int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent);
int PMPI_Type_get_extent_c(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent);
int PMPI_Type_get_extent_x(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent); /* deprecated */
int PMPI_Type_create_resized(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *new_type);
int PMPI_Type_create_resized_c(MPI_Datatype type, MPI_Count lb, MPI_Count extent, MPI_Datatype *new_type);
int PMPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint *true_lb, MPI_Aint *true_extent);
int PMPI_Type_get_true_extent_c(MPI_Datatype type, MPI_Count *true_lb, MPI_Count *true_extent);
int PMPI_Type_get_true_extent_x(MPI_Datatype type, MPI_Count *true_lb, MPI_Count *true_extent); /* deprecated */
int PMPI_Type_commit(MPI_Datatype *type);
int PMPI_Type_free(MPI_Datatype *type);
int PMPI_Type_dup(MPI_Datatype type, MPI_Datatype *new_type);
int PMPI_Get_elements(const MPI_Status *status, MPI_Datatype type, int *n);
int PMPI_Get_elements_c(const MPI_Status *status, MPI_Datatype type, MPI_Count *n);
int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype type, MPI_Count *n); /* deprecated */
int PMPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner);
int PMPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses, MPI_Count *counts,
    MPI_Count *types, int *combiner);
int PMPI_Type_get_contents(MPI_Datatype type, int max_integers, int max_addresses, int max_datatypes, int integers[],
    MPI_Aint addresses[], MPI_Datatype types[]);
int PMPI_Type_get_contents_c(MPI_Datatype type, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_counts,
    MPI_Count max_datatypes, int integers[], MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[]);
int PMPI_Type_create_f90_real(int p, int r, MPI_Datatype *new_type);
int PMPI_Type_create_f90_complex(int p, int r, MPI_Datatype *new_type);
int PMPI_Type_create_f90_integer(int r, MPI_Datatype *new_type);
int PMPI_Type_match_size(int type_class, int size, MPI_Datatype *type);
int PMPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type);
int PMPI_Pack(const void *from, int n, MPI_Datatype type, void *to, int size, int *position, MPI_Comm comm);
int PMPI_Pack_c(const void *from, MPI_Count n, MPI_Datatype type, void *to, MPI_Count size, MPI_Count *position,
    MPI_Comm comm);
int PMPI_Unpack(const void *from, int size, int *position, void *to, int n, MPI_Datatype type, MPI_Comm comm);
int PMPI_Unpack_c(const void *from, MPI_Count size, MPI_Count *position, void *to, MPI_Count n, MPI_Datatype type,
    MPI_Comm comm);
int PMPI_Pack_size(int n, MPI_Datatype type, MPI_Comm comm, int *size);
int PMPI_Pack_size_c(MPI_Count n, MPI_Datatype type, MPI_Comm comm, MPI_Count *size);
int PMPI_Pack_external(const char *datarep, const void *from, int n, MPI_Datatype type, void *to, MPI_Aint size,
    MPI_Aint *position);
int PMPI_Pack_external_c(const char *datarep, const void *from, MPI_Count n, MPI_Datatype type, void *to,
    MPI_Count size, MPI_Count *position);
int PMPI_Unpack_external(const char *datarep, const void *from, MPI_Aint size, MPI_Aint *position, void *to, int n,
    MPI_Datatype type);
int PMPI_Unpack_external_c(const char *datarep, const void *from, MPI_Count size, MPI_Count *position, void *to,
    MPI_Count n, MPI_Datatype type);
int PMPI_Pack_external_size(const char *datarep, int n, MPI_Datatype type, MPI_Aint *size);
int PMPI_Pack_external_size_c(const char *datarep, MPI_Count n, MPI_Datatype type, MPI_Count *size);

/* The same for tools that define the names above themselves: Collective communication */

int PMPI_Barrier(MPI_Comm comm);
int PMPI_Bcast(void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm);
int PMPI_Bcast_c(void *buf, MPI_Count n, MPI_Datatype type, int root, MPI_Comm comm);
int PMPI_Gather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    int root, MPI_Comm comm);
int PMPI_Gather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm);
int PMPI_Gatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[], const int at[],
    MPI_Datatype recv_type, int root, MPI_Comm comm);
int PMPI_Gatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, const MPI_Count recv_n[],
    const MPI_Aint at[], MPI_Datatype recv_type, int root, MPI_Comm comm);
int PMPI_Scatter(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    int root, MPI_Comm comm);
int PMPI_Scatter_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm);
int PMPI_Scatterv(const void *send, const int send_n[], const int at[], MPI_Datatype send_type, void *recv,
    int recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm);
int PMPI_Scatterv_c(const void *send, const MPI_Count send_n[], const MPI_Aint at[], MPI_Datatype send_type,
    void *recv, MPI_Count recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm);
int PMPI_Allgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Allgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Allgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Allgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Alltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Alltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Alltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type, void *recv,
    const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Alltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[], MPI_Datatype send_type,
    void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Alltoallw(const void *send, const int send_n[], const int send_at[], const MPI_Datatype send_types[],
    void *recv, const int recv_n[], const int recv_at[], const MPI_Datatype recv_types[], MPI_Comm comm);
int PMPI_Alltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm);
int PMPI_Reduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int PMPI_Reduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int PMPI_Allreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Allreduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Reduce_scatter_block(const void *send, void *recv, int recv_n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Reduce_scatter_block_c(const void *send, void *recv, MPI_Count recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm);
int PMPI_Reduce_scatter(const void *send, void *recv, const int recv_n[], MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Reduce_scatter_c(const void *send, void *recv, const MPI_Count recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm);
int PMPI_Scan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Scan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Exscan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Exscan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op);
int PMPI_Op_create_c(MPI_User_function_c *function, int commutes, MPI_Op *op);
int PMPI_Op_free(MPI_Op *op);
int PMPI_Op_commutative(MPI_Op op, int *commutes);
int PMPI_Reduce_local(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op);
int PMPI_Reduce_local_c(const void *from, void *to, MPI_Count n, MPI_Datatype type, MPI_Op op);
int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int PMPI_Ibcast(void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Ibcast_c(void *buf, MPI_Count n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Igather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n, MPI_Datatype recv_type,
    int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Igather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Igatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Igatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, const MPI_Count recv_n[],
    const MPI_Aint at[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Iscatter(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Iscatter_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Iscatterv(const void *send, const int send_n[], const int at[], MPI_Datatype send_type, void *recv,
    int recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Iscatterv_c(const void *send, const MPI_Count send_n[], const MPI_Aint at[], MPI_Datatype send_type,
    void *recv, MPI_Count recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Iallgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Iallgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Iallgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Iallgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ialltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ialltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ialltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type, void *recv,
    const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ialltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[], MPI_Datatype send_type,
    void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Ialltoallw(const void *send, const int send_n[], const int send_at[], const MPI_Datatype send_types[],
    void *recv, const int recv_n[], const int recv_at[], const MPI_Datatype recv_types[], MPI_Comm comm,
    MPI_Request *request);
int PMPI_Ialltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Request *request);
int PMPI_Ireduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Ireduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Iallreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Iallreduce_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Ireduce_scatter_block(const void *send, void *recv, int recv_n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Ireduce_scatter_block_c(const void *send, void *recv, MPI_Count recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Request *request);
int PMPI_Ireduce_scatter(const void *send, void *recv, const int recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Request *request);
int PMPI_Ireduce_scatter_c(const void *send, void *recv, const MPI_Count recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Request *request);
int PMPI_Iscan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request);
int PMPI_Iscan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Iexscan(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Iexscan_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Request *request);
int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Bcast_init(void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Bcast_init_c(void *buf, MPI_Count n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Gather_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Gather_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Gatherv_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Gatherv_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Scatter_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Scatter_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Scatterv_init(const void *send, const int send_n[], const int at[], MPI_Datatype send_type, void *recv,
    int recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Scatterv_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint at[], MPI_Datatype send_type,
    void *recv, MPI_Count recv_n, MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Allgather_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Allgather_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Allgatherv_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Allgatherv_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Alltoall_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Alltoall_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Alltoallv_init(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type, void *recv,
    const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Alltoallv_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    MPI_Datatype send_type, void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Alltoallw_init(const void *send, const int send_n[], const int send_at[], const MPI_Datatype send_types[],
    void *recv, const int recv_n[], const int recv_at[], const MPI_Datatype recv_types[], MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int PMPI_Alltoallw_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Reduce_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int PMPI_Reduce_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, int root,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Allreduce_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int PMPI_Allreduce_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int PMPI_Reduce_scatter_block_init(const void *send, void *recv, int recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Reduce_scatter_block_init_c(const void *send, void *recv, MPI_Count recv_n, MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Reduce_scatter_init(const void *send, void *recv, const int recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Reduce_scatter_init_c(const void *send, void *recv, const MPI_Count recv_n[], MPI_Datatype type, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Scan_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Scan_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);
int PMPI_Exscan_init(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Exscan_init_c(const void *send, void *recv, MPI_Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
    MPI_Info info, MPI_Request *request);

/* The same for tools that define the names above themselves: Groups and communicators */

int PMPI_Group_size(MPI_Group group, int *size);
int PMPI_Group_rank(MPI_Group group, int *rank);
int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks[], MPI_Group group2, int ranks2[]);
int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result);
int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group);
int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *new_group);
int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *new_group);
int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *new_group);
int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *new_group);
int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *new_group);
int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *new_group);
int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *new_group);
int PMPI_Group_from_session_pset(MPI_Session session, const char *name, MPI_Group *new_group);
int PMPI_Group_free(MPI_Group *group);
int PMPI_Comm_size(MPI_Comm comm, int *size);
int PMPI_Comm_rank(MPI_Comm comm, int *rank);
int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result);
int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *new_comm);
int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new_comm);
int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm *new_comm, MPI_Request *request);
int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new_comm, MPI_Request *request);
int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *new_comm);
int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *new_comm);
int PMPI_Comm_create_from_group(MPI_Group group, const char *name, MPI_Info info, MPI_Errhandler errhandler,
    MPI_Comm *new_comm);
int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *new_comm);
int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *new_comm);
int PMPI_Comm_free(MPI_Comm *comm);
int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info);
int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info *info);
int PMPI_Comm_test_inter(MPI_Comm comm, int *flag);
int PMPI_Comm_remote_size(MPI_Comm comm, int *size);
int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group);
int PMPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
    MPI_Comm *new_comm);
int PMPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
    int remote_leader, const char *name, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *new_comm);
int PMPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *new_comm);

/* The same for tools that define the names above themselves: Attributes and names */

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete_fn, int *key,
    void *state);
int PMPI_Comm_free_keyval(int *key);
int PMPI_Comm_set_attr(MPI_Comm comm, int key, void *value);
int PMPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag);
int PMPI_Comm_delete_attr(MPI_Comm comm, int key);
int PMPI_Win_create_keyval(MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *delete_fn, int *key,
    void *state);
int PMPI_Win_free_keyval(int *key);
int PMPI_Win_set_attr(MPI_Win win, int key, void *value);
int PMPI_Win_get_attr(MPI_Win win, int key, void *value, int *flag);
int PMPI_Win_delete_attr(MPI_Win win, int key);
int PMPI_Type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *delete_fn, int *key,
    void *state);
int PMPI_Type_free_keyval(int *key);
int PMPI_Type_set_attr(MPI_Datatype type, int key, void *value);
int PMPI_Type_get_attr(MPI_Datatype type, int key, void *value, int *flag);
int PMPI_Type_delete_attr(MPI_Datatype type, int key);
int PMPI_Comm_set_name(MPI_Comm comm, const char *name);
int PMPI_Comm_get_name(MPI_Comm comm, char *name, int *length);
int PMPI_Type_set_name(MPI_Datatype type, const char *name);
int PMPI_Type_get_name(MPI_Datatype type, char *name, int *length);
int PMPI_Win_set_name(MPI_Win win, const char *name);
int PMPI_Win_get_name(MPI_Win win, char *name, int *length);

/* The same for tools that define the names above themselves: Topologies */

int PMPI_Cart_create(MPI_Comm comm, int dims_n, const int dims[], const int periods[], int reorder,
    MPI_Comm *new_comm);
int PMPI_Dims_create(int nodes, int dims_n, int dims[]);
int PMPI_Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *new_comm);
int PMPI_Dist_graph_create_adjacent(MPI_Comm comm, int sources_n, const int sources[], const int *source_weights,
    int dests_n, const int dests[], const int *dest_weights, MPI_Info info, int reorder, MPI_Comm *new_comm);
int PMPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[], const int dests[],
    const int *weights, MPI_Info info, int reorder, MPI_Comm *new_comm);
int PMPI_Topo_test(MPI_Comm comm, int *status);
int PMPI_Graphdims_get(MPI_Comm comm, int *nodes, int *edges);
int PMPI_Graph_get(MPI_Comm comm, int max_index, int max_edges, int index[], int edges[]);
int PMPI_Cartdim_get(MPI_Comm comm, int *dims_n);
int PMPI_Cart_get(MPI_Comm comm, int max_dims, int dims[], int periods[], int coords[]);
int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank);
int PMPI_Cart_coords(MPI_Comm comm, int rank, int max_dims, int coords[]);
int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *n);
int PMPI_Graph_neighbors(MPI_Comm comm, int rank, int max_n, int neighbors[]);
int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int *sources_n, int *dests_n, int *weighted);
int PMPI_Dist_graph_neighbors(MPI_Comm comm, int max_sources, int sources[], int *source_weights, int max_dests,
    int dests[], int *dest_weights);
int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *source, int *dest);
int PMPI_Cart_sub(MPI_Comm comm, const int kept[], MPI_Comm *new_comm);
int PMPI_Cart_map(MPI_Comm comm, int dims_n, const int dims[], const int periods[], int *rank);
int PMPI_Graph_map(MPI_Comm comm, int nodes, const int index[], const int edges[], int *rank);
int PMPI_Neighbor_allgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Neighbor_allgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Neighbor_allgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Neighbor_allgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Neighbor_alltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Neighbor_alltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv, MPI_Count recv_n,
    MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Neighbor_alltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type,
    void *recv, const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm);
int PMPI_Neighbor_alltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    MPI_Datatype send_type, void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type,
    MPI_Comm comm);
int PMPI_Neighbor_alltoallw(const void *send, const int send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const int recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm);
int PMPI_Neighbor_alltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm);
int PMPI_Ineighbor_allgather(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_allgather_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_allgatherv(const void *send, int send_n, MPI_Datatype send_type, void *recv, const int recv_n[],
    const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_allgatherv_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_alltoall(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_alltoall_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_alltoallv(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type,
    void *recv, const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_alltoallv_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    MPI_Datatype send_type, void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type,
    MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_alltoallw(const void *send, const int send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const int recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Request *request);
int PMPI_Ineighbor_alltoallw_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Request *request);
int PMPI_Neighbor_allgather_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_allgather_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_allgatherv_init(const void *send, int send_n, MPI_Datatype send_type, void *recv,
    const int recv_n[], const int at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_allgatherv_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    const MPI_Count recv_n[], const MPI_Aint at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Neighbor_alltoall_init(const void *send, int send_n, MPI_Datatype send_type, void *recv, int recv_n,
    MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_alltoall_init_c(const void *send, MPI_Count send_n, MPI_Datatype send_type, void *recv,
    MPI_Count recv_n, MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_alltoallv_init(const void *send, const int send_n[], const int send_at[], MPI_Datatype send_type,
    void *recv, const int recv_n[], const int recv_at[], MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
    MPI_Request *request);
int PMPI_Neighbor_alltoallv_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    MPI_Datatype send_type, void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[], MPI_Datatype recv_type,
    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_alltoallw_init(const void *send, const int send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const int recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Neighbor_alltoallw_init_c(const void *send, const MPI_Count send_n[], const MPI_Aint send_at[],
    const MPI_Datatype send_types[], void *recv, const MPI_Count recv_n[], const MPI_Aint recv_at[],
    const MPI_Datatype recv_types[], MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* The same for tools that define the names above themselves: Environment */

int PMPI_Get_version(int *version, int *subversion);
int PMPI_Get_library_version(char *version, int *length);
int PMPI_Get_processor_name(char *name, int *length);
int PMPI_Get_hw_resource_info(MPI_Info *info);
int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *base);
int PMPI_Free_mem(void *base);
double PMPI_Wtime(void);
double PMPI_Wtick(void);

/* The same for tools that define the names above themselves: Error handling */

int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler);
int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler);
int PMPI_Win_create_errhandler(MPI_Win_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler);
int PMPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler);
int PMPI_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler);
int PMPI_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler);
int PMPI_Session_create_errhandler(MPI_Session_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler);
int PMPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler);
int PMPI_Errhandler_free(MPI_Errhandler *errhandler);
int PMPI_Error_string(int code, char *string, int *length);
int PMPI_Error_class(int code, int *error_class);
int PMPI_Add_error_class(int *error_class);
int PMPI_Remove_error_class(int error_class);
int PMPI_Add_error_code(int error_class, int *code);
int PMPI_Remove_error_code(int code);
int PMPI_Add_error_string(int code, const char *string);
int PMPI_Remove_error_string(int code);
int PMPI_Comm_call_errhandler(MPI_Comm comm, int code);
int PMPI_Win_call_errhandler(MPI_Win win, int code);
int PMPI_File_call_errhandler(MPI_File file, int code);
int PMPI_Session_call_errhandler(MPI_Session session, int code);

/* The same for tools that define the names above themselves: Info */

int PMPI_Info_create(MPI_Info *info);
int PMPI_Info_create_env(int argc, char *argv[], MPI_Info *info);
int PMPI_Info_set(MPI_Info info, const char *key, const char *value);
int PMPI_Info_delete(MPI_Info info, const char *key);
int PMPI_Info_get_string(MPI_Info info, const char *key, int *length, char *value, int *flag);
int PMPI_Info_get_nkeys(MPI_Info info, int *n);
int PMPI_Info_get_nthkey(MPI_Info info, int n, char *key);
int PMPI_Info_dup(MPI_Info info, MPI_Info *new_info);
int PMPI_Info_free(MPI_Info *info);

/* The same for tools that define the names above themselves: Start, end and sessions */

int PMPI_Init(int *argc, char ***argv);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int PMPI_Initialized(int *flag);
int PMPI_Finalize(void);
int PMPI_Finalized(int *flag);
int PMPI_Abort(MPI_Comm comm, int code);
int PMPI_Query_thread(int *provided);
int PMPI_Is_thread_main(int *flag);
int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session);
int PMPI_Session_finalize(MPI_Session *session);
int PMPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int *n);
int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *length, char *name);
int PMPI_Session_get_info(MPI_Session session, MPI_Info *info);
int PMPI_Session_get_pset_info(MPI_Session session, const char *name, MPI_Info *info);

/* The same for tools that define the names above themselves: Dynamic processes */

int PMPI_Comm_spawn(const char *command, char *argv[], int processes, MPI_Info info, int root, MPI_Comm comm,
    MPI_Comm *new_comm, int codes[]);
int PMPI_Comm_spawn_multiple(int n, char *commands[], char **arguments[], const int processes[],
    const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *new_comm, int codes[]);
int PMPI_Comm_get_parent(MPI_Comm *parent);
int PMPI_Open_port(MPI_Info info, char *port);
int PMPI_Close_port(const char *port);
int PMPI_Comm_accept(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *new_comm);
int PMPI_Comm_connect(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *new_comm);
int PMPI_Publish_name(const char *service, MPI_Info info, const char *port);
int PMPI_Unpublish_name(const char *service, MPI_Info info, const char *port);
int PMPI_Lookup_name(const char *service, MPI_Info info, char *port);
int PMPI_Comm_disconnect(MPI_Comm *comm);
int PMPI_Comm_join(int fd, MPI_Comm *new_comm);

/* The same for tools that define the names above themselves: Windows */

int PMPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win);
int PMPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win);
int PMPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int PMPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int PMPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int PMPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int PMPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *unit, void *base);
int PMPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *unit, void *base);
int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win);
int PMPI_Win_attach(MPI_Win win, void *base, MPI_Aint size);
int PMPI_Win_detach(MPI_Win win, const void *base);
int PMPI_Win_free(MPI_Win *win);
int PMPI_Win_get_group(MPI_Win win, MPI_Group *group);
int PMPI_Win_set_info(MPI_Win win, MPI_Info info);
int PMPI_Win_get_info(MPI_Win win, MPI_Info *info);
int PMPI_Put(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win);
int PMPI_Put_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Win win);
int PMPI_Get(void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win);
int PMPI_Get_c(void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Win win);
int PMPI_Accumulate(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int PMPI_Accumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int PMPI_Get_accumulate(const void *origin, int origin_n, MPI_Datatype origin_type, void *result, int result_n,
    MPI_Datatype result_type, int target, MPI_Aint at, int target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int PMPI_Get_accumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, void *result,
    MPI_Count result_n, MPI_Datatype result_type, int target, MPI_Aint at, MPI_Count target_n,
    MPI_Datatype target_type, MPI_Op op, MPI_Win win);
int PMPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
    MPI_Win win);
int PMPI_Compare_and_swap(const void *origin, const void *compare, void *result, MPI_Datatype type, int target,
    MPI_Aint at, MPI_Win win);
int PMPI_Rput(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int PMPI_Rput_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int PMPI_Rget(void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at, int target_n,
    MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int PMPI_Rget_c(void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
int PMPI_Raccumulate(const void *origin, int origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    int target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
int PMPI_Raccumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, int target, MPI_Aint at,
    MPI_Count target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
int PMPI_Rget_accumulate(const void *origin, int origin_n, MPI_Datatype origin_type, void *result, int result_n,
    MPI_Datatype result_type, int target, MPI_Aint at, int target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
    MPI_Request *request);
int PMPI_Rget_accumulate_c(const void *origin, MPI_Count origin_n, MPI_Datatype origin_type, void *result,
    MPI_Count result_n, MPI_Datatype result_type, int target, MPI_Aint at, MPI_Count target_n,
    MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
int PMPI_Win_fence(int assertion, MPI_Win win);
int PMPI_Win_start(MPI_Group group, int assertion, MPI_Win win);
int PMPI_Win_complete(MPI_Win win);
int PMPI_Win_post(MPI_Group group, int assertion, MPI_Win win);
int PMPI_Win_wait(MPI_Win win);
int PMPI_Win_test(MPI_Win win, int *flag);
int PMPI_Win_lock(int lock_type, int rank, int assertion, MPI_Win win);
int PMPI_Win_lock_all(int assertion, MPI_Win win);
int PMPI_Win_unlock(int rank, MPI_Win win);
int PMPI_Win_unlock_all(MPI_Win win);
int PMPI_Win_flush(int rank, MPI_Win win);
int PMPI_Win_flush_all(MPI_Win win);
int PMPI_Win_flush_local(int rank, MPI_Win win);
int PMPI_Win_flush_local_all(MPI_Win win);
int PMPI_Win_sync(MPI_Win win);

/* The same for tools that define the names above themselves: Generalized requests and statuses */

int PMPI_Grequest_start(MPI_Grequest_query_function *query, MPI_Grequest_free_function *free,
    MPI_Grequest_cancel_function *cancel, void *state, MPI_Request *request);
int PMPI_Grequest_complete(MPI_Request request);
int PMPI_Status_set_elements(MPI_Status *status, MPI_Datatype type, int n);
int PMPI_Status_set_elements_c(MPI_Status *status, MPI_Datatype type, MPI_Count n);
int PMPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype type, MPI_Count n); /* deprecated */
int PMPI_Status_set_cancelled(MPI_Status *status, int flag);
int PMPI_Status_set_source(MPI_Status *status, int source);
int PMPI_Status_set_tag(MPI_Status *status, int tag);
int PMPI_Status_set_error(MPI_Status *status, int error);

/* The same for tools that define the names above themselves: Files */

int PMPI_File_open(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *file);
int PMPI_File_close(MPI_File *file);
int PMPI_File_delete(const char *name, MPI_Info info);
int PMPI_File_set_size(MPI_File file, MPI_Offset size);
int PMPI_File_preallocate(MPI_File file, MPI_Offset size);
int PMPI_File_get_size(MPI_File file, MPI_Offset *size);
int PMPI_File_get_group(MPI_File file, MPI_Group *group);
int PMPI_File_get_amode(MPI_File file, int *amode);
int PMPI_File_set_info(MPI_File file, MPI_Info info);
int PMPI_File_get_info(MPI_File file, MPI_Info *info);
int PMPI_File_set_view(MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
    MPI_Info info);
int PMPI_File_get_view(MPI_File file, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep);
int PMPI_File_read_at(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_read_at_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int PMPI_File_read_at_all(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_read_at_all_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int PMPI_File_write_at(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type,
    MPI_Status *status);
int PMPI_File_write_at_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int PMPI_File_write_at_all(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type,
    MPI_Status *status);
int PMPI_File_write_at_all_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Status *status);
int PMPI_File_iread_at(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iread_at_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int PMPI_File_iread_at_all(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type,
    MPI_Request *request);
int PMPI_File_iread_at_all_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int PMPI_File_iwrite_at(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type,
    MPI_Request *request);
int PMPI_File_iwrite_at_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int PMPI_File_iwrite_at_all(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type,
    MPI_Request *request);
int PMPI_File_iwrite_at_all_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type,
    MPI_Request *request);
int PMPI_File_read(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_read_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_read_all(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_read_all_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write_all(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write_all_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_iread(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iread_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iread_all(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iread_all_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iwrite(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iwrite_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iwrite_all(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iwrite_all_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_seek(MPI_File file, MPI_Offset offset, int whence);
int PMPI_File_get_position(MPI_File file, MPI_Offset *offset);
int PMPI_File_get_byte_offset(MPI_File file, MPI_Offset offset, MPI_Offset *disp);
int PMPI_File_read_shared(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_read_shared_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write_shared(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write_shared_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_iread_shared(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iread_shared_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iwrite_shared(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_iwrite_shared_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Request *request);
int PMPI_File_read_ordered(MPI_File file, void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_read_ordered_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write_ordered(MPI_File file, const void *buf, int n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_write_ordered_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type, MPI_Status *status);
int PMPI_File_seek_shared(MPI_File file, MPI_Offset offset, int whence);
int PMPI_File_get_position_shared(MPI_File file, MPI_Offset *offset);
int PMPI_File_read_at_all_begin(MPI_File file, MPI_Offset offset, void *buf, int n, MPI_Datatype type);
int PMPI_File_read_at_all_begin_c(MPI_File file, MPI_Offset offset, void *buf, MPI_Count n, MPI_Datatype type);
int PMPI_File_read_at_all_end(MPI_File file, void *buf, MPI_Status *status);
int PMPI_File_write_at_all_begin(MPI_File file, MPI_Offset offset, const void *buf, int n, MPI_Datatype type);
int PMPI_File_write_at_all_begin_c(MPI_File file, MPI_Offset offset, const void *buf, MPI_Count n, MPI_Datatype type);
int PMPI_File_write_at_all_end(MPI_File file, const void *buf, MPI_Status *status);
int PMPI_File_read_all_begin(MPI_File file, void *buf, int n, MPI_Datatype type);
int PMPI_File_read_all_begin_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type);
int PMPI_File_read_all_end(MPI_File file, void *buf, MPI_Status *status);
int PMPI_File_write_all_begin(MPI_File file, const void *buf, int n, MPI_Datatype type);
int PMPI_File_write_all_begin_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type);
int PMPI_File_write_all_end(MPI_File file, const void *buf, MPI_Status *status);
int PMPI_File_read_ordered_begin(MPI_File file, void *buf, int n, MPI_Datatype type);
int PMPI_File_read_ordered_begin_c(MPI_File file, void *buf, MPI_Count n, MPI_Datatype type);
int PMPI_File_read_ordered_end(MPI_File file, void *buf, MPI_Status *status);
int PMPI_File_write_ordered_begin(MPI_File file, const void *buf, int n, MPI_Datatype type);
int PMPI_File_write_ordered_begin_c(MPI_File file, const void *buf, MPI_Count n, MPI_Datatype type);
int PMPI_File_write_ordered_end(MPI_File file, const void *buf, MPI_Status *status);
int PMPI_File_get_type_extent(MPI_File file, MPI_Datatype type, MPI_Aint *extent);
int PMPI_File_get_type_extent_c(MPI_File file, MPI_Datatype type, MPI_Count *extent);
int PMPI_Register_datarep(const char *datarep, MPI_Datarep_conversion_function *read,
    MPI_Datarep_conversion_function *write, MPI_Datarep_extent_function *extent, void *state);
int PMPI_Register_datarep_c(const char *datarep, MPI_Datarep_conversion_function_c *read,
    MPI_Datarep_conversion_function_c *write, MPI_Datarep_extent_function *extent, void *state);
int PMPI_File_set_atomicity(MPI_File file, int flag);
int PMPI_File_get_atomicity(MPI_File file, int *flag);
int PMPI_File_sync(MPI_File file);

/* The same for tools that define the names above themselves: Tools */

int PMPI_Pcontrol(int level, ...);
int PMPI_T_init_thread(int required, int *provided);
int PMPI_T_finalize(void);
int PMPI_T_enum_get_info(MPI_T_enum values, int *n, char *name, int *name_length);
int PMPI_T_enum_get_item(MPI_T_enum values, int index, int *value, char *name, int *name_length);
int PMPI_T_cvar_get_num(int *n);
int PMPI_T_cvar_get_info(int index, char *name, int *name_length, int *verbosity, MPI_Datatype *type,
    MPI_T_enum *values, char *text, int *text_length, int *bind, int *scope);
int PMPI_T_cvar_get_index(const char *name, int *index);
int PMPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *handle, int *n);
int PMPI_T_cvar_handle_free(MPI_T_cvar_handle *handle);
int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void *buf);
int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buf);
int PMPI_T_pvar_get_num(int *n);
int PMPI_T_pvar_get_info(int index, char *name, int *name_length, int *verbosity, int *var_class, MPI_Datatype *type,
    MPI_T_enum *values, char *text, int *text_length, int *bind, int *readonly, int *continuous, int *atomic);
int PMPI_T_pvar_get_index(const char *name, int var_class, int *index);
int PMPI_T_pvar_session_create(MPI_T_pvar_session *session);
int PMPI_T_pvar_session_free(MPI_T_pvar_session *session);
int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void *object, MPI_T_pvar_handle *handle, int *n);
int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle);
int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf);
int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf);
int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf);
int PMPI_T_source_get_num(int *n);
int PMPI_T_source_get_info(int index, char *name, int *name_length, char *text, int *text_length,
    MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info);
int PMPI_T_source_get_timestamp(int index, MPI_Count *time);
int PMPI_T_event_get_num(int *events);
int PMPI_T_event_get_info(int index, char *name, int *name_length, int *verbosity, MPI_Datatype types[],
    MPI_Aint places[], int *elements, MPI_T_enum *values, MPI_Info *info, char *text, int *text_length, int *bind);
int PMPI_T_event_get_index(const char *name, int *index);
int PMPI_T_event_handle_alloc(int index, void *object, MPI_Info info, MPI_T_event_registration *registration);
int PMPI_T_event_handle_set_info(MPI_T_event_registration registration, MPI_Info info);
int PMPI_T_event_handle_get_info(MPI_T_event_registration registration, MPI_Info *info);
int PMPI_T_event_register_callback(MPI_T_event_registration registration, MPI_T_cb_safety safety, MPI_Info info,
    void *state, MPI_T_event_cb_function *callback);
int PMPI_T_event_callback_set_info(MPI_T_event_registration registration, MPI_T_cb_safety safety, MPI_Info info);
int PMPI_T_event_callback_get_info(MPI_T_event_registration registration, MPI_T_cb_safety safety, MPI_Info *info);
int PMPI_T_event_handle_free(MPI_T_event_registration registration, void *state,
    MPI_T_event_free_cb_function *callback);
int PMPI_T_event_set_dropped_handler(MPI_T_event_registration registration, MPI_T_event_dropped_cb_function *callback);
int PMPI_T_event_read(MPI_T_event_instance instance, int element, void *buf);
int PMPI_T_event_copy(MPI_T_event_instance instance, void *buf);
int PMPI_T_event_get_timestamp(MPI_T_event_instance instance, MPI_Count *time);
int PMPI_T_event_get_source(MPI_T_event_instance instance, int *index);
int PMPI_T_category_get_num(int *n);
int PMPI_T_category_get_info(int index, char *name, int *name_length, char *text, int *text_length, int *cvars,
    int *pvars, int *categories);
int PMPI_T_category_get_num_events(int index, int *events);
int PMPI_T_category_get_index(const char *name, int *index);
int PMPI_T_category_get_cvars(int index, int n, int indices[]);
int PMPI_T_category_get_pvars(int index, int n, int indices[]);
int PMPI_T_category_get_events(int index, int n, int indices[]);
int PMPI_T_category_get_categories(int index, int n, int indices[]);
int PMPI_T_category_changed(int *updates);

/* The same for tools that define the names above themselves: The binary interface and other languages */

int PMPI_Abi_get_version(int *version, int *subversion);
int PMPI_Abi_get_info(MPI_Info *info);
int PMPI_Abi_get_fortran_info(MPI_Info *info);
int PMPI_Abi_set_fortran_info(MPI_Info info);
int PMPI_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set);
int PMPI_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false);
int PMPI_Comm_toint(MPI_Comm comm);
MPI_Comm PMPI_Comm_fromint(int value);
int PMPI_Errhandler_toint(MPI_Errhandler errhandler);
MPI_Errhandler PMPI_Errhandler_fromint(int value);
int PMPI_File_toint(MPI_File file);
MPI_File PMPI_File_fromint(int value);
int PMPI_Group_toint(MPI_Group group);
MPI_Group PMPI_Group_fromint(int value);
int PMPI_Info_toint(MPI_Info info);
MPI_Info PMPI_Info_fromint(int value);
int PMPI_Message_toint(MPI_Message message);
MPI_Message PMPI_Message_fromint(int value);
int PMPI_Op_toint(MPI_Op op);
MPI_Op PMPI_Op_fromint(int value);
int PMPI_Request_toint(MPI_Request request);
MPI_Request PMPI_Request_fromint(int value);
int PMPI_Session_toint(MPI_Session session);
MPI_Session PMPI_Session_fromint(int value);
int PMPI_Type_toint(MPI_Datatype type);
MPI_Datatype PMPI_Type_fromint(int value);
int PMPI_Win_toint(MPI_Win win);
MPI_Win PMPI_Win_fromint(int value);

/* The same for tools that define the names above themselves: Deprecated */

int PMPI_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *delete_fn, int *key, void *state); /* deprecated */
int PMPI_Keyval_free(int *key); /* deprecated */
int PMPI_Attr_put(MPI_Comm comm, int key, void *value); /* deprecated */
int PMPI_Attr_get(MPI_Comm comm, int key, void *value, int *flag); /* deprecated */
int PMPI_Attr_delete(MPI_Comm comm, int key); /* deprecated */
int PMPI_Info_get(MPI_Info info, const char *key, int length, char *value, int *flag); /* deprecated */
int PMPI_Info_get_valuelen(MPI_Info info, const char *key, int *length, int *flag); /* deprecated */

#if defined(__GNUC__)
#define MPI_INLINE static __inline__
#else
#define MPI_INLINE static inline
#endif

/* What MPI-3.0 has removed
 *
 * MPI-5.0, section 17.1: no part of the binary interface. The functions call those that have replaced them. MPI_LB and MPI_UB, which
 * were datatypes, are not there. MPI_NO_REMOVED, defined before this header, leaves all of it out.
 */

#if !defined(MPI_NO_REMOVED)

typedef MPI_Comm_errhandler_function MPI_Handler_function;

MPI_INLINE int MPI_Address(void *location, MPI_Aint *address) { return MPI_Get_address(location, address); }
MPI_INLINE int MPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler)
{
    return MPI_Comm_create_errhandler(function, errhandler);
}
MPI_INLINE int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler) { return MPI_Comm_get_errhandler(comm, errhandler); }
MPI_INLINE int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler) { return MPI_Comm_set_errhandler(comm, errhandler); }
MPI_INLINE int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
    MPI_Aint lower;
    return MPI_Type_get_extent(datatype, &lower, extent);
}
MPI_INLINE int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint extent;
    return MPI_Type_get_extent(datatype, displacement, &extent);
}
MPI_INLINE int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint lower = 0, extent = 0;
    int code = MPI_Type_get_extent(datatype, &lower, &extent);
    if (code == MPI_SUCCESS)
        *displacement = lower + extent;
    return code;
}
MPI_INLINE int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}
MPI_INLINE int MPI_Type_hindexed(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return MPI_Type_create_hindexed(count, blocklengths, displacements, oldtype, newtype);
}
MPI_INLINE int MPI_Type_struct(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[], MPI_Datatype *newtype)
{
    return MPI_Type_create_struct(count, blocklengths, displacements, types, newtype);
}

#endif /* MPI_NO_REMOVED */

/* Handles and statuses of Fortran
 *
 * MPI-5.0, section 20.4: no part of the binary interface. The functions call those of the interface, and a handle of Fortran is
 * the integer of the ABI. MPI_NO_FORTRAN, defined before this header, leaves all of it to another binding.
 */

#if !defined(MPI_NO_FORTRAN)

typedef int MPI_Fint;
typedef MPI_Status MPI_F08_status;

/* Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE lie in a common block of libmpifort_abi; null in a program without it. */
#if defined(__GNUC__)
extern MPI_Fint tagwire_mpi_addresses_[] __attribute__((weak));
#else
extern MPI_Fint tagwire_mpi_addresses_[];
#endif
#define MPI_F_STATUS_IGNORE      (tagwire_mpi_addresses_)
#define MPI_F_STATUSES_IGNORE    (tagwire_mpi_addresses_ ? tagwire_mpi_addresses_ + 8 : 0)
#define MPI_F08_STATUS_IGNORE    ((MPI_F08_status *)MPI_F_STATUS_IGNORE)
#define MPI_F08_STATUSES_IGNORE  ((MPI_F08_status *)MPI_F_STATUSES_IGNORE)

MPI_INLINE MPI_Fint MPI_Comm_c2f(MPI_Comm comm) { return PMPI_Comm_toint(comm); }
MPI_INLINE MPI_Comm MPI_Comm_f2c(MPI_Fint comm) { return PMPI_Comm_fromint(comm); }
#define MPI_Comm_c2f MPI_Comm_c2f
#define MPI_Comm_f2c MPI_Comm_f2c
#define PMPI_Comm_c2f MPI_Comm_c2f
#define PMPI_Comm_f2c MPI_Comm_f2c

MPI_INLINE MPI_Fint MPI_Errhandler_c2f(MPI_Errhandler errhandler) { return PMPI_Errhandler_toint(errhandler); }
MPI_INLINE MPI_Errhandler MPI_Errhandler_f2c(MPI_Fint errhandler) { return PMPI_Errhandler_fromint(errhandler); }
#define MPI_Errhandler_c2f MPI_Errhandler_c2f
#define MPI_Errhandler_f2c MPI_Errhandler_f2c
#define PMPI_Errhandler_c2f MPI_Errhandler_c2f
#define PMPI_Errhandler_f2c MPI_Errhandler_f2c

MPI_INLINE MPI_Fint MPI_File_c2f(MPI_File file) { return PMPI_File_toint(file); }
MPI_INLINE MPI_File MPI_File_f2c(MPI_Fint file) { return PMPI_File_fromint(file); }
#define MPI_File_c2f MPI_File_c2f
#define MPI_File_f2c MPI_File_f2c
#define PMPI_File_c2f MPI_File_c2f
#define PMPI_File_f2c MPI_File_f2c

MPI_INLINE MPI_Fint MPI_Group_c2f(MPI_Group group) { return PMPI_Group_toint(group); }
MPI_INLINE MPI_Group MPI_Group_f2c(MPI_Fint group) { return PMPI_Group_fromint(group); }
#define MPI_Group_c2f MPI_Group_c2f
#define MPI_Group_f2c MPI_Group_f2c
#define PMPI_Group_c2f MPI_Group_c2f
#define PMPI_Group_f2c MPI_Group_f2c

MPI_INLINE MPI_Fint MPI_Info_c2f(MPI_Info info) { return PMPI_Info_toint(info); }
MPI_INLINE MPI_Info MPI_Info_f2c(MPI_Fint info) { return PMPI_Info_fromint(info); }
#define MPI_Info_c2f MPI_Info_c2f
#define MPI_Info_f2c MPI_Info_f2c
#define PMPI_Info_c2f MPI_Info_c2f
#define PMPI_Info_f2c MPI_Info_f2c

MPI_INLINE MPI_Fint MPI_Message_c2f(MPI_Message message) { return PMPI_Message_toint(message); }
MPI_INLINE MPI_Message MPI_Message_f2c(MPI_Fint message) { return PMPI_Message_fromint(message); }
#define MPI_Message_c2f MPI_Message_c2f
#define MPI_Message_f2c MPI_Message_f2c
#define PMPI_Message_c2f MPI_Message_c2f
#define PMPI_Message_f2c MPI_Message_f2c

MPI_INLINE MPI_Fint MPI_Op_c2f(MPI_Op op) { return PMPI_Op_toint(op); }
MPI_INLINE MPI_Op MPI_Op_f2c(MPI_Fint op) { return PMPI_Op_fromint(op); }
#define MPI_Op_c2f MPI_Op_c2f
#define MPI_Op_f2c MPI_Op_f2c
#define PMPI_Op_c2f MPI_Op_c2f
#define PMPI_Op_f2c MPI_Op_f2c

MPI_INLINE MPI_Fint MPI_Request_c2f(MPI_Request request) { return PMPI_Request_toint(request); }
MPI_INLINE MPI_Request MPI_Request_f2c(MPI_Fint request) { return PMPI_Request_fromint(request); }
#define MPI_Request_c2f MPI_Request_c2f
#define MPI_Request_f2c MPI_Request_f2c
#define PMPI_Request_c2f MPI_Request_c2f
#define PMPI_Request_f2c MPI_Request_f2c

MPI_INLINE MPI_Fint MPI_Session_c2f(MPI_Session session) { return PMPI_Session_toint(session); }
MPI_INLINE MPI_Session MPI_Session_f2c(MPI_Fint session) { return PMPI_Session_fromint(session); }
#define MPI_Session_c2f MPI_Session_c2f
#define MPI_Session_f2c MPI_Session_f2c
#define PMPI_Session_c2f MPI_Session_c2f
#define PMPI_Session_f2c MPI_Session_f2c

MPI_INLINE MPI_Fint MPI_Type_c2f(MPI_Datatype type) { return PMPI_Type_toint(type); }
MPI_INLINE MPI_Datatype MPI_Type_f2c(MPI_Fint type) { return PMPI_Type_fromint(type); }
#define MPI_Type_c2f MPI_Type_c2f
#define MPI_Type_f2c MPI_Type_f2c
#define PMPI_Type_c2f MPI_Type_c2f
#define PMPI_Type_f2c MPI_Type_f2c

MPI_INLINE MPI_Fint MPI_Win_c2f(MPI_Win win) { return PMPI_Win_toint(win); }
MPI_INLINE MPI_Win MPI_Win_f2c(MPI_Fint win) { return PMPI_Win_fromint(win); }
#define MPI_Win_c2f MPI_Win_c2f
#define MPI_Win_f2c MPI_Win_f2c
#define PMPI_Win_c2f MPI_Win_c2f
#define PMPI_Win_f2c MPI_Win_f2c

/* A status has one form in all languages. One that is ignored has no value: MPI_ERR_ARG. */
MPI_INLINE int tagwire_mpi_status_copy(const void *from, void *to)
{
    if (!from || !to || from == (const void *)MPI_F_STATUS_IGNORE || from == (const void *)MPI_F_STATUSES_IGNORE)
        return MPI_ERR_ARG;
    *(MPI_Status *)to = *(const MPI_Status *)from;
    return MPI_SUCCESS;
}
MPI_INLINE int MPI_Status_f2c(const MPI_Fint *from, MPI_Status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_c2f(const MPI_Status *from, MPI_Fint *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_f082c(const MPI_F08_status *from, MPI_Status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_c2f08(const MPI_Status *from, MPI_F08_status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_f2f08(const MPI_Fint *from, MPI_F08_status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_f082f(const MPI_F08_status *from, MPI_Fint *to) { return tagwire_mpi_status_copy(from, to); }
#define MPI_Status_f2c MPI_Status_f2c
#define PMPI_Status_f2c MPI_Status_f2c
#define MPI_Status_c2f MPI_Status_c2f
#define PMPI_Status_c2f MPI_Status_c2f
#define MPI_Status_f082c MPI_Status_f082c
#define PMPI_Status_f082c MPI_Status_f082c
#define MPI_Status_c2f08 MPI_Status_c2f08
#define PMPI_Status_c2f08 MPI_Status_c2f08
#define MPI_Status_f2f08 MPI_Status_f2f08
#define PMPI_Status_f2f08 MPI_Status_f2f08
#define MPI_Status_f082f MPI_Status_f082f
#define PMPI_Status_f082f MPI_Status_f082f

#endif /* MPI_NO_FORTRAN */

#if defined(__cplusplus)
}
#endif

#endif /* TAGWIRE_MPI_H */
