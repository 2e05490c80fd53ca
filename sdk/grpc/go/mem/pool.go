package mem

import (
	"fmt"
	"slices"
	"sync"
)

// NopBufferPool keeps nothing.
type NopBufferPool struct{}

// Get allocates.
func (NopBufferPool) Get(length int) *[]byte {
	bytes := make([]byte, length)
	return &bytes
}

// Put does nothing.
func (NopBufferPool) Put(*[]byte) {}

// tiered has a pool for each of some sizes.
type tiered struct {
	sizes []int
	pools []sync.Pool
}

// NewTieredBufferPool has slices of these sizes. Larger ones are not kept.
func NewTieredBufferPool(poolSizes ...int) BufferPool {
	sizes := slices.Clone(poolSizes)
	slices.Sort(sizes)
	return &tiered{sizes, make([]sync.Pool, len(sizes))}
}

// NewBinaryTieredBufferPool has slices whose sizes are these powers of two.
func NewBinaryTieredBufferPool(powerOfTwoExponents ...uint8) (BufferPool, error) {
	sizes := make([]int, len(powerOfTwoExponents))
	for i, exponent := range powerOfTwoExponents {
		if exponent > 30 {
			return nil, fmt.Errorf("mem: 2 to the power of %d is too large", exponent)
		}
		sizes[i] = 1 << exponent
	}
	return NewTieredBufferPool(sizes...), nil
}

func (t *tiered) Get(length int) *[]byte {
	index, _ := slices.BinarySearch(t.sizes, length)
	if index == len(t.sizes) {
		return NopBufferPool{}.Get(length)
	}
	if kept, ok := t.pools[index].Get().(*[]byte); ok {
		*kept = (*kept)[:length]
		clear(*kept)
		return kept
	}
	bytes := make([]byte, length, t.sizes[index])
	return &bytes
}

func (t *tiered) Put(bytes *[]byte) {
	if index, found := slices.BinarySearch(t.sizes, cap(*bytes)); found {
		t.pools[index].Put(bytes)
	}
}

var standard = NewTieredBufferPool(256, 4<<10, 16<<10, 32<<10, 1<<20)

// DefaultBufferPool is for all.
func DefaultBufferPool() BufferPool { return standard }
