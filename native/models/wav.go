package models

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/rlx-go/rlx/ir"
)

// ErrWAV is the kind of the errors for data that are no WAV file.
var ErrWAV = errors.New("damaged WAV file")

// The formats of samples in WAV files.
const (
	wavInteger    = 1
	wavFloat      = 3
	wavExtensible = 0xFFFE
)

// maxWAV bounds the bytes of a WAV file.
const maxWAV = 1 << 31

// wavFormat is the description of the samples.
type wavFormat struct {
	Format, Channels uint16
	Rate, Bytes      uint32
	Align, Bits      uint16
}

// ReadWAV reads sound, integers of 8, 16, 24 or 32 bits or floats of 32, as samples between −1 and 1, the mean of
// the channels, and their rate in hertz. The error is of kind [ErrWAV], of kind [ir.ErrUnsupported] for
// other samples, or that of r.
func ReadWAV(r io.Reader) (samples []float32, rate int, err error) {
	if r == nil {
		return nil, 0, ir.Attrf("r is nil: it must be a reader")
	}
	data, err := io.ReadAll(io.LimitReader(r, maxWAV))
	if err != nil {
		return nil, 0, err
	}
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WAVE" {
		return nil, 0, fmt.Errorf("%w: it does not begin with RIFF and WAVE", ErrWAV)
	}
	var format *wavFormat
	for rest := data[12:]; len(rest) >= 8; {
		name, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		body := rest[8:]
		size = min(size, int64(len(body))) // a stream does not know its length
		switch {
		case name == "fmt " && size >= 16:
			format = &wavFormat{}
			_ = binary.Read(bytes.NewReader(body[:16]), binary.LittleEndian, format) // of 16 bytes: it cannot fail
			if format.Format == wavExtensible && size >= 26 {
				format.Format = binary.LittleEndian.Uint16(body[24:])
			}
		case name == "data" && format != nil:
			samples, err := format.samples(body[:size])
			return samples, int(format.Rate), err
		}
		rest = body[min(size+size%2, int64(len(body))):]
	}
	return nil, 0, fmt.Errorf("%w: it has no samples, or no format before them", ErrWAV)
}

// samples returns the mean of the channels.
func (f wavFormat) samples(data []byte) ([]float32, error) {
	size := int(f.Bits) / 8
	integer := f.Format == wavInteger && f.Bits%8 == 0 && size >= 1 && size <= 4
	if !integer && (f.Format != wavFloat || f.Bits != 32) {
		return nil, ir.Errorf(ir.ErrUnsupported, "a WAV file has samples of format %d and %d bits: they must be integers of 8, 16, 24 or 32 bits or floats of 32", f.Format, f.Bits)
	}
	channels := int(f.Channels)
	if channels == 0 || f.Rate == 0 || int(f.Align) != channels*size {
		return nil, fmt.Errorf("%w: it has %d channels at %d Hz in %d bytes", ErrWAV, channels, f.Rate, f.Align)
	}
	out := make([]float32, len(data)/int(f.Align))
	for i := range out {
		sum := 0.
		for c := range channels {
			sum += f.value(data[i*int(f.Align)+c*size:][:size])
		}
		out[i] = float32(sum / float64(channels))
	}
	return out, nil
}

// value returns a sample.
func (f wavFormat) value(data []byte) float64 {
	switch {
	case f.Format == wavFloat:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
	case len(data) == 1: // the only ones without a sign
		return (float64(data[0]) - 128) / 128
	}
	var wide [4]byte
	copy(wide[4-len(data):], data)
	return float64(int32(binary.LittleEndian.Uint32(wide[:]))) / (1 << 31)
}
