// In a function there are no sockets, so no Redis, and no memory that outlives a request. The server around it has a store, in a file or in Redis.

package main

import (
	"context"
	"encoding/json"
	"errors"

	"sledge"
)

// triesMax limits how often a change is tried that others come before.
const triesMax = 10

func open() (store, error) { return bucket{}, nil }

// bucket keeps each cart as JSON, in the key-value store.
type bucket struct{}

// load returns a cart and its version. A bucket is open for one request.
func load(user string) (carts sledge.Bucket, cart map[string]uint32, version uint64, err error) {
	if carts, err = sledge.OpenBucket("carts"); err != nil {
		return
	}
	cart = map[string]uint32{}
	entry, err := carts.Get(user)
	if errors.Is(err, sledge.ErrNotFound) {
		return carts, cart, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(entry.Value, &cart)
	}
	return carts, cart, entry.Version, err
}

func (bucket) add(_ context.Context, user string, items map[string]uint32) (map[string]uint32, error) {
	for range triesMax {
		carts, cart, version, err := load(user)
		if err != nil {
			return nil, err
		}
		if err := merge(cart, items); err != nil {
			return nil, err
		}
		value, err := json.Marshal(cart)
		if err != nil {
			return nil, err
		}
		if swapped, _, err := carts.CompareAndSwap(user, version, value); swapped || err != nil {
			return cart, err
		}
	}
	return nil, errors.New("others change the cart all the time")
}

func (bucket) get(_ context.Context, user string) (map[string]uint32, error) {
	_, cart, _, err := load(user)
	return cart, err
}

func (bucket) empty(_ context.Context, user string) error {
	carts, err := sledge.OpenBucket("carts")
	if err != nil {
		return err
	}
	return carts.Delete(user)
}
