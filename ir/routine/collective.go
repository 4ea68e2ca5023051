package routine

import (
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Collective is a collective of the devices along an axis of a mesh, on contiguous arrays. Its
// arrays are the one that a device sends, of Count elements, and the result.
type Collective struct {
	Op        CollectiveOp
	Reduction CollectiveReduction // of AllReduce and ReduceScatter
	DType     dtype.DType
	Count     int
	// Unit is the size in bytes of an element in the device's memory.
	Unit    int
	Axis    string
	Devices int
	Root    int   // of Broadcast
	Pairs   Pairs // of Permute
}

// CollectiveOp is the operation of a [Collective].
type CollectiveOp uint8

// The operations. S is the array that a device sends.
const (
	AllReduce     CollectiveOp = iota // the reduction of S over all devices
	AllGather                         // S of all devices, in order
	ReduceScatter                     // part i of the reduction, on device i
	AllToAll                          // part i of S of every device, on device i
	Permute                           // S of the sender of a pair, zeros without one
	Broadcast                         // S of the root
	collectiveOps
)

// CollectiveReduction combines the elements of devices.
type CollectiveReduction uint8

// The reductions.
const (
	Sum CollectiveReduction = iota
	Max
	Min
	collectiveReductions
)

// Pairs lists senders and receivers: two bytes for each device, the lower first.
type Pairs string

// PairsOf returns the list of some pairs of devices below 65536.
func PairsOf(pairs [][2]int) Pairs {
	var b []byte
	for _, p := range pairs {
		b = append(b, byte(p[0]), byte(p[0]>>8), byte(p[1]), byte(p[1]>>8))
	}
	return Pairs(b)
}

// List returns the pairs.
func (p Pairs) List() (out [][2]int) {
	for ; len(p) >= 4; p = p[4:] {
		out = append(out, [2]int{int(p[0]) | int(p[1])<<8, int(p[2]) | int(p[3])<<8})
	}
	return out
}

// Name returns "collective".
func (c Collective) Name() string { return "collective" }

// collectiveWords is the number of words before the text of the axis.
const collectiveWords = 8

// Words implements [Routine].
func (c Collective) Words() []int {
	out := []int{int(c.Op), int(c.Reduction), int(c.DType), c.Count, c.Unit, c.Devices, c.Root, len(c.Axis)}
	for _, x := range []byte(c.Axis + string(c.Pairs)) {
		out = append(out, int(x))
	}
	return out
}

func collectiveOf(words []int) (Routine, error) {
	if len(words) < collectiveWords || words[7] < 0 || words[7] > len(words)-collectiveWords {
		return nil, format.Errorf("the collective has %d words; it must have %d and a text", len(words), collectiveWords)
	}
	text := make([]byte, 0, len(words))
	for _, w := range words[collectiveWords:] {
		if w < 0 || w > 255 {
			return nil, format.Errorf("a word of the collective is %d; it must be a byte", w)
		}
		text = append(text, byte(w))
	}
	for _, w := range words[:3] {
		if w < 0 || w > 255 {
			return nil, format.Errorf("a word of the collective is %d; it is out of range", w)
		}
	}
	c := Collective{
		Op: CollectiveOp(words[0]), Reduction: CollectiveReduction(words[1]), DType: dtype.DType(words[2]),
		Count: words[3], Unit: words[4], Devices: words[5], Root: words[6], Axis: string(text[:words[7]]), Pairs: Pairs(text[words[7]:]),
	}
	return c, c.Check()
}

// maxDevices bounds the devices along an axis.
const maxDevices = 1 << 16

// Check returns an error for an invalid collective: an unknown operation or type, a size out of
// range or that does not divide among the devices, a device out of range.
func (c Collective) Check() error {
	if c.Op >= collectiveOps || c.Reduction >= collectiveReductions || !c.DType.Valid() || c.Axis == "" {
		return format.Errorf("operation %d of a collective with reduction %d along %q; there is none", c.Op, c.Reduction, c.Axis)
	}
	if c.Devices < 1 || c.Devices > maxDevices || c.Root < 0 || c.Root >= c.Devices {
		return format.Errorf("a collective of %d devices with root %d; it is out of range", c.Devices, c.Root)
	}
	if c.Count < 0 || c.Unit < 1 || c.Unit > 16 || int64(c.Count)*int64(c.Unit)*int64(c.Devices) > maxNumber*8 || c.Count > maxNumber {
		return format.Errorf("a collective of %d elements of %d bytes; it is out of range", c.Count, c.Unit)
	}
	if (c.Op == ReduceScatter || c.Op == AllToAll) && c.Count%c.Devices != 0 {
		return format.Errorf("%d elements have no equal parts for %d devices", c.Count, c.Devices)
	}
	for _, p := range c.Pairs.List() {
		if p[0] >= c.Devices || p[1] >= c.Devices {
			return format.Errorf("a pair of devices %v; there are %d", p, c.Devices)
		}
	}
	return nil
}

// Bytes returns the sizes of the array to send and of the result.
func (c Collective) Bytes() (send, recv int) {
	send = c.Count * c.Unit
	switch c.Op {
	case AllGather:
		return send, send * c.Devices
	case ReduceScatter:
		return send, send / c.Devices
	}
	return send, send
}

// Arrays implements [Routine].
func (c Collective) Arrays() []Array {
	send, recv := c.Bytes()
	return []Array{{Bytes: send}, {Bytes: recv, Written: true}}
}

// Reference computes the result of device 0 where all devices send the same array.
func (c Collective) Reference(memory [][]byte) {
	send, recv := c.Bytes()
	from, to := memory[0][:send], memory[1][:recv]
	switch c.Op {
	case AllGather:
		for i := range c.Devices {
			copy(to[i*send:], from)
		}
	case AllToAll:
		for i := range c.Devices {
			copy(to[i*(send/c.Devices):], from[:send/c.Devices])
		}
	case Permute:
		clear(to)
		for _, p := range c.Pairs.List() {
			if p[1] == 0 {
				copy(to, from)
			}
		}
	default:
		copy(to, from)
		if (c.Op == AllReduce || c.Op == ReduceScatter) && c.Reduction == Sum {
			c.scale(to)
		}
	}
}

// scale multiplies elements by the number of devices: the sum of equal numbers. Those of complex
// numbers are pairs.
func (c Collective) scale(data []byte) {
	d := c.DType
	if d.IsComplex() {
		d = d.Real()
	}
	for size := d.Size(); len(data) >= size; data = data[size:] {
		var bits uint64
		for i := range size {
			bits |= uint64(data[i]) << (8 * i)
		}
		if d.IsFloat() {
			bits = d.FloatBits(float64(d.FloatFromBits(bits)) * float64(c.Devices))
		} else {
			bits *= uint64(c.Devices)
		}
		for i := range size {
			data[i] = byte(bits >> (8 * i))
		}
	}
}

// DeviceIndex writes the index of the device along an axis of the mesh, an i32, to its only array.
type DeviceIndex struct {
	Axis    string
	Devices int
}

// Name returns "device_index".
func (x DeviceIndex) Name() string { return "device_index" }

// Words implements [Routine].
func (x DeviceIndex) Words() []int {
	out := []int{x.Devices}
	for _, c := range []byte(x.Axis) {
		out = append(out, int(c))
	}
	return out
}

func deviceIndexOf(words []int) (Routine, error) {
	if len(words) < 2 || words[0] < 1 || words[0] > maxDevices {
		return nil, format.Errorf("the words of an index of a device are %v", words)
	}
	var axis []byte
	for _, w := range words[1:] {
		if w < 0 || w > 255 {
			return nil, format.Errorf("a word of an index of a device is %d; it must be a byte", w)
		}
		axis = append(axis, byte(w))
	}
	return DeviceIndex{string(axis), words[0]}, nil
}

// indexBytes is the size of an index.
const indexBytes = 4

// Arrays implements [Routine].
func (x DeviceIndex) Arrays() []Array { return []Array{{Bytes: indexBytes, Written: true}} }

// Reference writes 0.
func (x DeviceIndex) Reference(memory [][]byte) { clear(memory[0][:indexBytes]) }
