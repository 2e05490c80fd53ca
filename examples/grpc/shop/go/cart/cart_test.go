package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"testing"
)

// TestStore wants the same of the store in memory and, where REDIS_URL names a server, of Redis.
func TestStore(t *testing.T) {
	ctx := context.Background()
	t.Logf("REDIS_URL is %q", os.Getenv("REDIS_URL"))
	carts, err := open()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(expected map[string]uint32) {
		t.Helper()
		if cart, err := carts.get(ctx, "ada"); err != nil || !maps.Equal(cart, expected) {
			t.Fatalf("%v, %v; not %v", cart, err, expected)
		}
	}
	if err := carts.empty(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	expect(map[string]uint32{})
	if _, err := carts.add(ctx, "ada", map[string]uint32{"mug": 2, "pen": 1}); err != nil {
		t.Fatal(err)
	}
	cart, err := carts.add(ctx, "ada", map[string]uint32{"mug": 3})
	if err != nil || !maps.Equal(cart, map[string]uint32{"mug": 5, "pen": 1}) {
		t.Fatal(cart, err)
	}
	// All or none.
	if _, err := carts.add(ctx, "ada", map[string]uint32{"lamp": 1, "mug": quantityMax}); !errors.Is(err, errTooLarge) {
		t.Fatal(err)
	}
	expect(map[string]uint32{"mug": 5, "pen": 1})
	if err := carts.empty(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	expect(map[string]uint32{})
}
