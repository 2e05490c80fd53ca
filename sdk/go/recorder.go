package sledge

import "bytes"

// Recorder is a [ResponseWriter] for tests.
type Recorder struct {
	Status   int // 0 if the handler has set none, which clients see as 200
	Headers  []Field
	Trailers []Field
	Body     bytes.Buffer
	Streamed bool
}

func (w *Recorder) Write(bytes []byte) (int, error) { return w.Body.Write(bytes) }

func (w *Recorder) SetStatus(code int) { w.Status = code }

func (w *Recorder) SetHeader(name, value string) { w.Headers = set(w.Headers, name, value) }

func (w *Recorder) AddHeader(name, value string) { w.Headers = append(w.Headers, Field{name, value}) }

func (w *Recorder) SetTrailer(name, value string) { w.Trailers = set(w.Trailers, name, value) }

func (w *Recorder) Stream(int64) { w.Streamed = true }

func set(fields []Field, name, value string) []Field {
	var kept []Field
	for _, field := range fields {
		if field.Name != name {
			kept = append(kept, field)
		}
	}
	return append(kept, Field{name, value})
}
