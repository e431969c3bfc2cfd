/* The same in C++. */
#include "sum.c"
