package dtype_test

import (
	"hash/crc32"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// The bits that ml_dtypes 0.6.0 gives to f32 numbers (NumPy 2.4.6, x86-64):
// np.float32(x).astype(ml_dtypes.float8_e4m3fn), and float8_e5m2.
var float8Bits = []struct {
	x          float32
	e4m3, e5m2 uint64
}{
	{0, 0x00, 0x00},
	{448, 0x7e, 0x5f},
	{464, 0x7e, 0x5f}, // half way to what would be 480: to even
	{464.0000915527344, 0x7f, 0x5f},
	{-465, 0xff, 0xdf},
	{float32(math.Inf(1)), 0x7f, 0x7c},
	{float32(math.Inf(-1)), 0xff, 0xfc},
	{float32(math.NaN()), 0x7f, 0x7e},
	{61439, 0x7f, 0x7b},
	{61440, 0x7f, 0x7c},
	{-61440, 0xff, 0xfc},
	{0x1p-10, 0x00, 0x14},
	{0.0009766601724550128, 0x01, 0x14},
	{0x1.8p-9, 0x02, 0x1a},
	{0x1p-16, 0x00, 0x01},
	{0x1p-17, 0x00, 0x00},
	{7.637024282303173e-06, 0x00, 0x01},
	{1.0625, 0x38, 0x3c},
	{1.1875, 0x3a, 0x3d},
	{1.125, 0x39, 0x3c},
	{1.375, 0x3b, 0x3e},
	{0.10000000149011612, 0x1d, 0x2e},
	{-0.30000001192092896, 0xaa, 0xb5},
	{3.141590118408203, 0x45, 0x42},
	{100, 0x6c, 0x56},
}

func TestFloat8IsThatOfMLDtypes(t *testing.T) {
	for _, c := range float8Bits {
		if got := dtype.F8E4M3.FloatBits(float64(c.x)); got != c.e4m3 {
			t.Errorf("%v has the bits %#02x in f8e4m3fn, want %#02x", c.x, got, c.e4m3)
		}
		if got := dtype.F8E5M2.FloatBits(float64(c.x)); got != c.e5m2 {
			t.Errorf("%v has the bits %#02x in f8e5m2, want %#02x", c.x, got, c.e5m2)
		}
	}
	if got := dtype.F8E5M2.FloatBits(math.Copysign(math.NaN(), -1)); got != 0xfe {
		t.Errorf("a negative NaN has the bits %#02x", got)
	}
}

// TestNarrowFloatsOfAMillionNumbers converts every f32 with the given low 12 bits that is no NaN,
// in the order of their bits. It compares CRC-32s of the narrow bits with those of ml_dtypes 0.6.0
// and, for f16, NumPy 2.4.6.
func TestNarrowFloatsOfAMillionNumbers(t *testing.T) {
	for d, want := range map[dtype.DType][3]uint32{
		dtype.F8E4M3: {0x87faf6fa, 0xfe0a3313, 0xfe0a3313},
		dtype.F8E5M2: {0xf64270a7, 0xab74f16d, 0xab74f16d},
		dtype.F16:    {0x2c01c7e2, 0xcb4b6fc9, 0xcb4b6fc9},
		dtype.BF16:   {0x956c2dac, 0x0d4d7dd9, 0x0d4d7dd9},
	} {
		for i, low := range []uint32{0, 1, 0xfff} {
			var data []byte
			for high := range uint32(1 << 20) {
				x := math.Float32frombits(high<<12 | low)
				if math.IsNaN(float64(x)) {
					continue
				}
				bits := d.FloatBits(float64(x))
				if data = append(data, byte(bits)); d.Size() == 2 {
					data = append(data, byte(bits>>8))
				}
			}
			if got := crc32.ChecksumIEEE(data); got != want[i] {
				t.Errorf("%s, low bits %#x: CRC-32 %#x, want %#x", d, low, got, want[i])
			}
		}
	}
}

func TestAllFloat8SurviveAndAreInOrder(t *testing.T) {
	for _, d := range []dtype.DType{dtype.F8E4M3, dtype.F8E5M2} {
		last := math.Inf(-1)
		for b := range uint64(256) {
			x := d.FloatFromBits(b)
			if got := d.FloatBits(x); got != b && !math.IsNaN(x) {
				t.Errorf("%s: %#02x became %v and then %#02x", d, b, x, got)
			}
			if d.Round(x) != x && !math.IsNaN(x) {
				t.Errorf("%s: %v is rounded to %v", d, x, d.Round(x))
			}
			if b < 0x80 && !(x > last || math.IsNaN(x)) {
				t.Errorf("%s: %#02x is %v, after %v", d, b, x, last)
			}
			last = x
		}
	}
	// The largest, the smallest normal and the smallest numbers, as published by
	// Micikevicius et al. 2022 ("FP8 Formats for Deep Learning", table 1).
	for b, want := range map[uint64]float64{0x7e: 448, 0x08: 0x1p-6, 0x07: 0.875 * 0x1p-6, 0x01: 0x1p-9} {
		if got := dtype.F8E4M3.FloatFromBits(b); got != want {
			t.Errorf("f8e4m3fn %#02x is %v, want %v", b, got, want)
		}
	}
	for b, want := range map[uint64]float64{0x7b: 57344, 0x7c: math.Inf(1), 0x04: 0x1p-14, 0x03: 0.75 * 0x1p-14, 0x01: 0x1p-16} {
		if got := dtype.F8E5M2.FloatFromBits(b); got != want {
			t.Errorf("f8e5m2 %#02x is %v, want %v", b, got, want)
		}
	}
}

func TestFloat8IsRoundedOnce(t *testing.T) {
	// By way of float32, where the small part is lost, this ties to even: down.
	x := 1 + 0x1p-4 + 0x1p-40
	if got := dtype.F8E4M3.Round(x); got != 1.125 {
		t.Errorf("%v is rounded to %v", x, got)
	}
	if got := dtype.F8E4M3.Round(math.Inf(-1)); !math.IsNaN(got) || !math.Signbit(got) {
		t.Errorf("-inf is rounded to %v", got)
	}
}
