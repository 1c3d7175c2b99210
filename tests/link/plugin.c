#include <bloomline/bloomline.h>
int lookups(void) {
  for (int k = 6; k <= 11; k += 5) {
    bloomline_filter_t *filter = bloomline_filter_with_blocks(40, k);
    int found = 0;
    for (int key = 0; key < 1000; key++) bloomline_filter_insert(filter, &key, sizeof key);
    for (int key = 0; key < 2000; key++) found += bloomline_filter_contains(filter, &key, sizeof key);
    bloomline_filter_free(filter);
    if (found < 1000 || found > 1050) return k;
  }
  return 0;
}
