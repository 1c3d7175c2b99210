#include <bloomline/bloomline.h>
int other(void);
int main(void) { return other() != 1 || bloomline_hash_key("", 0, 0) == 0; }
