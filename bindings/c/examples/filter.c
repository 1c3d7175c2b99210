/* Builds a filter, writes it to bytes, and looks up keys in those bytes. */
#include <bloomline/bloomline.h>
#include <stdio.h>

static const char *answer(bool found) { return found ? "possibly present" : "definitely absent"; }

int main(void) {
  bloomline_filter_t *seen = bloomline_filter_with_fpr(1000000, 0.01);
  if (seen == NULL) return fprintf(stderr, "%s\n", bloomline_last_error()), 1;
  bloomline_filter_insert(seen, "user4291", 8);
  printf("user4291: %s\n", answer(bloomline_filter_contains(seen, "user4291", 8)));
  printf("user4292: %s\n", answer(bloomline_filter_contains(seen, "user4292", 8)));

  size_t length;
  void *bytes = bloomline_filter_to_standalone(seen, &length);
  bloomline_filter_free(seen);
  bloomline_view_t *view = bloomline_view_from_standalone(bytes, length);
  if (view == NULL) return fprintf(stderr, "%s\n", bloomline_last_error()), 1;
  printf("Read in place, from %zu bytes:\n", length);
  printf("user4291: %s\n", answer(bloomline_view_contains(view, "user4291", 8)));
  printf("user4292: %s\n", answer(bloomline_view_contains(view, "user4292", 8)));
  bloomline_view_free(view);
  bloomline_free(bytes);
  return 0;
}
