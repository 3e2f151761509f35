/* mekik/version.h - the engine version that this SDK belongs to. Draft kinds ("mekik.drafter/0") load only into exactly this one:
 * mekik_plugin.built_for holds it. All others go by the ABI. */
#ifndef MEKIK_VERSION_H
#define MEKIK_VERSION_H
#define MEKIK_VERSION "0.1.0"
#endif
