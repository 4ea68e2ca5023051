package models_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/models"
)

// wav returns a file with a chunk that is passed over before the samples.
func wav(format, channels uint16, bits int, data []byte) []byte {
	var b bytes.Buffer
	b.WriteString("RIFF\x00\x00\x00\x00WAVElist\x03\x00\x00\x00abc\x00fmt \x10\x00\x00\x00")
	align := channels * uint16(bits/8)
	for _, x := range []any{format, channels, uint32(8000), uint32(8000) * uint32(align), align, uint16(bits)} {
		_ = binary.Write(&b, binary.LittleEndian, x)
	}
	b.WriteString("data")
	_ = binary.Write(&b, binary.LittleEndian, uint32(len(data)))
	b.Write(data)
	return b.Bytes()
}

// TestReadWAV reads samples of every type, and refuses other files.
func TestReadWAV(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want []float32
	}{
		"8 bits":   {wav(1, 1, 8, []byte{0, 128, 192}), []float32{-1, 0, 0.5}},
		"16 bits":  {wav(1, 1, 16, []byte{0, 0x80, 0, 0, 0, 0x40}), []float32{-1, 0, 0.5}},
		"24 bits":  {wav(1, 1, 24, []byte{0, 0, 0x80, 0, 0, 0x40}), []float32{-1, 0.5}},
		"32 bits":  {wav(1, 1, 32, []byte{0, 0, 0, 0xC0}), []float32{-0.5}},
		"floats":   {wav(3, 1, 32, []byte{0, 0, 0x80, 0xBE}), []float32{-0.25}},
		"stereo":   {wav(1, 2, 16, []byte{0, 0x40, 0, 0xC0, 0, 0x40, 0, 0}), []float32{0, 0.25}},
		"an end":   {wav(1, 1, 16, []byte{0, 0x40, 7}), []float32{0.5}},
		"a stream": {append(wav(1, 1, 16, nil)[:len(wav(1, 1, 16, nil))-4], 0xff, 0xff, 0xff, 0xff, 0, 0x40), []float32{0.5}},
	} {
		got, rate, err := models.ReadWAV(bytes.NewReader(c.file))
		if err != nil || rate != 8000 || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v at %d Hz, %v; want %v", name, got, rate, err, c.want)
		}
	}
	good := wav(1, 1, 16, []byte{1, 2})
	for name, c := range map[string]struct {
		file []byte
		kind error
	}{
		"nothing":        {nil, models.ErrWAV},
		"another file":   {bytes.Replace(slices.Clone(good), []byte("WAVE"), []byte("AVI "), 1), models.ErrWAV},
		"no format":      {bytes.Replace(slices.Clone(good), []byte("fmt "), []byte("fmtx"), 1), models.ErrWAV},
		"no samples":     {good[:len(good)-12], models.ErrWAV},
		"no channels":    {wav(1, 0, 16, []byte{1, 2}), models.ErrWAV},
		"12 bits":        {wav(1, 1, 12, []byte{1, 2}), ir.ErrUnsupported},
		"another format": {wav(2, 1, 16, []byte{1, 2}), ir.ErrUnsupported},
	} {
		if _, _, err := models.ReadWAV(bytes.NewReader(c.file)); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}
