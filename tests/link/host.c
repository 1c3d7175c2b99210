#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *plugin = dlopen(argv[argc - 1], RTLD_NOW);
  int (*lookups)(void) = plugin ? (int (*)(void))dlsym(plugin, "lookups") : 0;
  if (!lookups) return fprintf(stderr, "%s\n", dlerror()), 1;
  return lookups();
}
