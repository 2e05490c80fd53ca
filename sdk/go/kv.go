package sledge

import (
	"encoding/binary"
	"runtime"
)

// Bucket is a part of the key-value store of the function's tenant. What writes returns when it is durable.
type Bucket struct{ handle int32 }

// Entry is a value with the version of the commit that wrote it. Version 0 stands for a key that does not exist.
type Entry struct {
	Value   []byte
	Version uint64
}

// Expected is a version that a key must have for a commit.
type Expected struct {
	Key     string
	Version uint64
}

// Change is a new value for a key, or its deletion.
type Change struct {
	Key    string
	Value  []byte
	Delete bool
}

// OpenBucket opens a bucket. It need not exist. The server needs a store (kv in its configuration).
func OpenBucket(name string) (Bucket, error) {
	handle, err := checked(kvOpen(name))
	return Bucket{int32(handle)}, err
}

// Get returns the entry of a key, or [ErrNotFound].
func (b Bucket) Get(key string) (Entry, error) {
	var version uint64
	value, err := text(func(at pointer, room uint32) int32 { return kvGet(b.handle, key, at, room, &version) })
	return Entry{value, version}, err
}

// GetMany returns the entries of several keys at one moment, in their order; version 0 where there is none.
func (b Bucket) GetMany(keys []string) ([]Entry, error) {
	length := 0
	for _, key := range keys {
		length += len(key)
	}
	asked := newList(length)
	for _, key := range keys {
		asked.bytes(key)
	}
	const row = 16
	found := make([]byte, row*len(keys))
	values, err := text(func(values pointer, room uint32) int32 {
		return kvGetMany(b.handle, at(asked.rows), uint32(len(keys)), at(found), values, room)
	})
	runtime.KeepAlive(asked)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(keys))
	for i := range entries {
		place := found[row*i:]
		offset, length := binary.LittleEndian.Uint32(place[8:]), binary.LittleEndian.Uint32(place[12:])
		if length != nothing {
			entries[i] = Entry{values[offset:][:length:length], binary.LittleEndian.Uint64(place)}
		}
	}
	return entries, nil
}

// Exists tells whether a key has a value.
func (b Bucket) Exists(key string) (bool, error) {
	there, err := checked(kvExists(b.handle, key))
	return there == 1, err
}

// Keys returns all keys with that prefix, in order.
func (b Bucket) Keys(prefix string) ([]string, error) {
	var keys []string
	after := ""
	rows := make([]byte, 4*firstRoom)
	for {
		count, err := checked(kvListKeys(b.handle, prefix, after, at(rows), uint32(len(rows))))
		if err != nil || count == 0 {
			return keys, err
		}
		for rest := rows; count > 0; count-- {
			var key []byte
			key, rest, _ = next(rest)
			after = string(key)
			keys = append(keys, after)
		}
	}
}

// Set writes a value and returns its version.
func (b Bucket) Set(key string, value []byte) (uint64, error) {
	var version uint64
	_, err := checked(kvSet(b.handle, key, at(value), uint32(len(value)), &version))
	return version, err
}

// Delete deletes a key, if it exists.
func (b Bucket) Delete(key string) error {
	_, err := checked(kvDelete(b.handle, key))
	return err
}

// Increment adds to a decimal number, which is 0 if the key does not exist, and returns the sum.
func (b Bucket) Increment(key string, delta int64) (int64, error) {
	var sum int64
	_, err := checked(kvIncrement(b.handle, key, delta, &sum))
	return sum, err
}

// CompareAndSwap writes a value if the key has the expected version. It returns the version that the key has then.
func (b Bucket) CompareAndSwap(key string, expected uint64, value []byte) (swapped bool, version uint64, err error) {
	done, err := checked(kvCompareAndSwap(b.handle, key, int64(expected), at(value), uint32(len(value)), &version))
	return done == 1, version, err
}

// Commit makes all changes if all keys have the expected versions, and none otherwise. It returns the version of what was written, or that of the
// first key that did not match.
func (b Bucket) Commit(expected []Expected, changes []Change) (committed bool, version uint64, err error) {
	length := 0
	for _, one := range expected {
		length += len(one.Key)
	}
	for _, one := range changes {
		length += len(one.Key) + len(one.Value)
	}
	conditions := newList(length)
	for _, one := range expected {
		conditions.bytes(one.Key)
		conditions.number64(one.Version)
	}
	writes := newList(length)
	for _, one := range changes {
		writes.bytes(one.Key)
		if one.Delete {
			writes.number32(0)
			writes.number32(nothing)
		} else {
			writes.bytes(string(one.Value))
		}
	}
	done, err := checked(kvCommit(b.handle, at(conditions.rows), uint32(len(expected)), at(writes.rows), uint32(len(changes)), &version))
	runtime.KeepAlive(conditions)
	runtime.KeepAlive(writes)
	return done == 1, version, err
}
