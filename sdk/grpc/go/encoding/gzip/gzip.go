// Package gzip has the compressor of that name. Importing it registers it.
package gzip

import (
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/encoding"
)

// Name of the compressor.
const Name = "gzip"

func init() { encoding.RegisterCompressor(&compressor{level: gzip.DefaultCompression}) }

// SetLevel is for init functions.
func SetLevel(level int) error {
	if level < gzip.DefaultCompression || level > gzip.BestCompression {
		return fmt.Errorf("gzip: there is no level %d", level)
	}
	encoding.RegisterCompressor(&compressor{level: level})
	return nil
}

type compressor struct {
	level   int
	writers sync.Pool
	readers sync.Pool
}

func (*compressor) Name() string { return Name }

type writer struct {
	*gzip.Writer
	of *compressor
}

func (w *writer) Close() error {
	err := w.Writer.Close()
	if of := w.of; of != nil {
		w.of = nil
		of.writers.Put(w)
	}
	return err
}

func (c *compressor) Compress(to io.Writer) (io.WriteCloser, error) {
	if w, ok := c.writers.Get().(*writer); ok {
		w.Reset(to)
		w.of = c
		return w, nil
	}
	w, err := gzip.NewWriterLevel(to, c.level)
	return &writer{w, c}, err
}

type reader struct {
	*gzip.Reader
	of *compressor
}

func (r *reader) Read(bytes []byte) (int, error) {
	count, err := r.Reader.Read(bytes)
	if of := r.of; err == io.EOF && of != nil {
		r.of = nil
		of.readers.Put(r)
	}
	return count, err
}

func (c *compressor) Decompress(from io.Reader) (io.Reader, error) {
	if r, ok := c.readers.Get().(*reader); ok {
		if err := r.Reset(from); err != nil {
			c.readers.Put(r)
			return nil, err
		}
		r.of = c
		return r, nil
	}
	r, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	return &reader{r, c}, nil
}
