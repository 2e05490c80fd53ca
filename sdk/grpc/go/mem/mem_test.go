package mem

import (
	"bytes"
	"io"
	"testing"
)

// counting counts what is taken and not given back.
type counting struct {
	BufferPool
	out int
}

func (c *counting) Get(length int) *[]byte {
	c.out++
	return c.BufferPool.Get(length)
}

func (c *counting) Put(bytes *[]byte) {
	c.out--
	c.BufferPool.Put(bytes)
}

func TestBuffersGoBackToTheirPool(t *testing.T) {
	pool := &counting{BufferPool: NewTieredBufferPool(4<<10, 64<<10)}
	all := bytes.Repeat([]byte("0123456789"), 10_000)
	slice, err := ReadAll(bytes.NewReader(all), pool)
	if err != nil || slice.Len() != len(all) || !bytes.Equal(slice.Materialize(), all) {
		t.Fatal(err, slice.Len())
	}
	reader := slice.Reader()
	if count, err := reader.Discard(40_000); count != 40_000 || err != nil {
		t.Fatal(count, err)
	}
	if peeked, err := reader.Peek(3, nil); err != nil || string(peeked[0]) != "012" {
		t.Fatal(peeked, err)
	}
	rest, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(rest, all[40_000:]) {
		t.Fatal(err, len(rest))
	}
	reader.Close()
	one := slice.MaterializeToBuffer(pool)
	left, right := SplitUnsafe(one, 5)
	part := left.Slice(1, 3)
	left.Free()
	right.Free()
	if string(part.ReadOnlyData()) != "12" {
		t.Fatal(string(part.ReadOnlyData()))
	}
	part.Free()
	slice.Free()
	if pool.out != 0 {
		t.Fatal(pool.out)
	}
}
