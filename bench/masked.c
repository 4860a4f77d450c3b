/* Loaded before all else (LD_PRELOAD): answers the CPUID instructions that masked.py turned into traps, without the
 * bits that MASKED_BITS names ("leaf:subleaf:register:bits,...", registers 0 to 3 for eax to edx, numbers in hex), and
 * gives the file MASKED_CPUINFO to who opens /proc/cpuinfo. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST = 16 };
static struct { unsigned leaf, subleaf, place, bits; } masks[MOST];
static int count;
static const char *cpuinfo;

static void answer(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *next = (const unsigned char *)registers[REG_RIP];
  if (next[-1] != 0xcc || next[0] != 0x90) {
    static const char said[] = "masked: a trap that is not ours\n";
    if (write(STDERR_FILENO, said, sizeof said - 1) < 0) _exit(71);
    _exit(70);
  }
  unsigned leaf = (unsigned)registers[REG_RAX], subleaf = (unsigned)registers[REG_RCX], found[4];
  __cpuid_count(leaf, subleaf, found[0], found[1], found[2], found[3]);
  for (int at = 0; at < count; at++)
    if (masks[at].leaf == leaf && masks[at].subleaf == subleaf) found[masks[at].place] &= ~masks[at].bits;
  registers[REG_RAX] = found[0];
  registers[REG_RBX] = found[1];
  registers[REG_RCX] = found[2];
  registers[REG_RDX] = found[3];
}

__attribute__((constructor(101))) static void begin(void) {
  const char *asked = getenv("MASKED_BITS");
  for (; asked && count < MOST; asked = strchr(asked, ',') ? strchr(asked, ',') + 1 : NULL, count++)
    if (sscanf(asked, "%x:%x:%x:%x", &masks[count].leaf, &masks[count].subleaf, &masks[count].place,
               &masks[count].bits) != 4 || masks[count].place > 3)
      abort();
  cpuinfo = getenv("MASKED_CPUINFO");
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
  sigaction(SIGTRAP, &action, NULL);
}

static int opened(const char *name, const char *path, int flags, mode_t mode) {
  int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
  return real(cpuinfo && !strcmp(path, "/proc/cpuinfo") ? cpuinfo : path, flags, mode);
}

#define MODE(flags) va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest)
int open(const char *path, int flags, ...) { MODE(flags); return opened("open", path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags); return opened("open64", path, flags, mode); }
