int lookups(void);
int main(void) { return lookups(); }
