package main

import "testing"

func TestGreet(t *testing.T) {
	if got := greet("Ada\n"); got != "Hello, Ada!\n" {
		t.Fatalf("got %q", got)
	}
}
