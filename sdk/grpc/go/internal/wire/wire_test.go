package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand"
	"testing"
	"time"
)

// pieces gives a body in pieces of any length.
type pieces struct {
	left   []byte
	random *rand.Rand
}

func (p *pieces) More(into []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	count := copy(into, p.left[:1+p.random.Intn(len(p.left))])
	p.left = p.left[count:]
	return count, nil
}

func TestFramesComeInPieces(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for i := 0; i < 200; i++ {
		var body []byte
		var sent [][]byte
		for i, end := 0, random.Intn(5); i < end; i++ {
			message := make([]byte, random.Intn(300))
			random.Read(message)
			frame := append(make([]byte, FrameHead), message...)
			PutHead(frame, len(message)%2 == 1)
			body, sent = append(body, frame...), append(sent, message)
		}
		cut := random.Intn(len(body) + 1)
		frames, from := Frames{Room: make([]byte, random.Intn(64))}, &pieces{body[:cut], random}
		begin := 0
		for i, want := range sent {
			message, compressed, err := frames.Next(300, from)
			end := begin + FrameHead + len(want)
			switch {
			case end <= cut:
				if err != nil || !bytes.Equal(message, want) || compressed != (len(want)%2 == 1) {
					t.Fatal(i, err)
				}
			case cut == begin && err != io.EOF || cut != begin && err != io.ErrUnexpectedEOF:
				t.Fatal(begin, cut, end, err)
			}
			if end > cut {
				break
			}
			begin = end
		}
		if cut == len(body) {
			if _, _, err := frames.Next(300, from); err != io.EOF || !frames.IsEmpty() {
				t.Fatal(err)
			}
		}
	}
}

func TestALongFrameIsRefusedByItsHead(t *testing.T) {
	frames := Frames{}
	_, _, err := frames.Next(10, &pieces{[]byte{0, 0xff, 0xff, 0xff, 0xff}, rand.New(rand.NewSource(1))})
	var large TooLarge
	if !errors.As(err, &large) || large.Limit != 10 {
		t.Fatal(err)
	}
}

func TestRows(t *testing.T) {
	rows := AppendField(AppendField(AppendField(nil, "a", "1"), "b-bin", "AQ=="), "a", "")
	rows = AppendField(AppendField(AppendField(rows, "grpc-status", "0"), "host", "h"), "c-bin", "!")
	md := Metadata(rows)
	if len(md) != 3 || len(md["a"]) != 2 || md["b-bin"][0] != "\x01" || md[":authority"][0] != "h" {
		t.Fatal(md)
	}
	for cut := range rows {
		Metadata(rows[:cut])
	}
	if _, _, _, ok := NextField([]byte{0xff, 0xff, 0xff, 0xff, 1}); ok {
		t.Fatal()
	}
}

func TestMessages(t *testing.T) {
	for _, text := range []string{"", "plain", "100 %", "ä\n\x00", "%41"} {
		if got := DecodeMessage([]byte(EncodeMessage(text))); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
	if EncodeMessage("ä%") != "%C3%A4%25" || DecodeMessage([]byte("%c3%a4%zz%")) != "ä%zz%" || EncodeMessage("\xff") != "%EF%BF%BD" {
		t.Error(EncodeMessage("ä%"), DecodeMessage([]byte("%c3%a4%zz%")), EncodeMessage("\xff"))
	}
}

func TestTimeouts(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1n": 1, "20u": 20 * time.Microsecond, "300m": 300 * time.Millisecond, "4S": 4 * time.Second, "5M": 5 * time.Minute, "6H": 6 * time.Hour,
		"99999999H": math.MaxInt64, "0n": 0,
	} {
		if got, ok := ParseTimeout([]byte(text)); !ok || got != want {
			t.Error(text, got, ok)
		}
	}
	for _, text := range []string{"", "1", "n", "1s", "-1S", "1.5S", "999999999S", "+1S"} {
		if got, ok := ParseTimeout([]byte(text)); ok {
			t.Error(text, got)
		}
	}
	for _, timeout := range []time.Duration{0, 1, 99_999_999, 100_000_001, time.Hour, 1000 * time.Hour, math.MaxInt64} {
		if got, ok := ParseTimeout([]byte(FormatTimeout(timeout))); !ok || got < timeout-timeout/10_000 {
			t.Error(timeout, FormatTimeout(timeout), got)
		}
	}
}
