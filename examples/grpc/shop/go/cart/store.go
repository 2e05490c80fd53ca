//go:build !wasip1

package main

import (
	"context"
	"maps"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// open returns the store of REDIS_URL, or one in memory.
func open() (store, error) {
	url := os.Getenv("REDIS_URL")
	if url == "" {
		return &memory{carts: map[string]map[string]uint32{}}, nil
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return &redisStore{client: redis.NewClient(options)}, nil
}

// memory keeps carts as long as the process lives.
type memory struct {
	lock  sync.Mutex
	carts map[string]map[string]uint32
}

func (m *memory) add(_ context.Context, user string, items map[string]uint32) (map[string]uint32, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	cart := maps.Clone(m.carts[user])
	if cart == nil {
		cart = map[string]uint32{}
	}
	if err := merge(cart, items); err != nil {
		return nil, err
	}
	m.carts[user] = cart
	return maps.Clone(cart), nil
}

func (m *memory) get(_ context.Context, user string) (map[string]uint32, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return maps.Clone(m.carts[user]), nil
}

func (m *memory) empty(_ context.Context, user string) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.carts, user)
	return nil
}

// redisStore keeps each cart in a hash.
type redisStore struct{ client *redis.Client }

// triesMax limits how often a change is tried that others come before.
const triesMax = 10

// kept is how long a cart is kept that its user has left.
const kept = 30 * 24 * time.Hour

func key(user string) string { return "cart:" + user }

func (s *redisStore) add(ctx context.Context, user string, items map[string]uint32) (map[string]uint32, error) {
	var cart map[string]uint32
	change := func(tx *redis.Tx) error {
		before, err := tx.HGetAll(ctx, key(user)).Result()
		if err != nil {
			return err
		}
		if cart, err = quantities(before); err != nil {
			return err
		}
		if err := merge(cart, items); err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			for product := range items {
				pipe.HSet(ctx, key(user), product, cart[product])
			}
			pipe.Expire(ctx, key(user), kept)
			return nil
		})
		return err
	}
	for range triesMax {
		if err := s.client.Watch(ctx, change, key(user)); err != redis.TxFailedErr {
			return cart, err
		}
	}
	return nil, redis.TxFailedErr
}

func (s *redisStore) get(ctx context.Context, user string) (map[string]uint32, error) {
	cart, err := s.client.HGetAll(ctx, key(user)).Result()
	if err != nil {
		return nil, err
	}
	return quantities(cart)
}

func (s *redisStore) empty(ctx context.Context, user string) error {
	return s.client.Del(ctx, key(user)).Err()
}

func quantities(fields map[string]string) (map[string]uint32, error) {
	cart := make(map[string]uint32, len(fields))
	for product, text := range fields {
		quantity, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, err
		}
		cart[product] = uint32(quantity)
	}
	return cart, nil
}
