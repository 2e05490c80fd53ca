/* The least that a function can do: the floor beneath every latency in benches/request.rs. */
int main(void) { return 0; }
