/* The version of these headers. zero_version() gives the version of the library that was linked. */
#ifndef ZERO_VERSION_H
#define ZERO_VERSION_H

#define ZERO_VERSION_MAJOR 0
#define ZERO_VERSION_MINOR 1
#define ZERO_VERSION_PATCH 0

#endif
