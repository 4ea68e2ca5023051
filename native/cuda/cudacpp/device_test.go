//go:build cgo && linux

package cudacpp_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/kernel/kerneltest"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cuda/cudacpp"
	"github.com/rlx-go/rlx/native/cuda/driver"
)

func TestKernelsComputeOnCUDAWhatPlainLoopsDo(t *testing.T) {
	device, err := driver.Open(0)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("RLX_REQUIRE"), ","), "cuda") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Log(device.Name)
	for _, c := range append(kerneltest.Cases(), kerneltest.Wide()...) {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			got, err := run(device, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Compare(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// run launches the kernel of a case and returns its arrays.
func run(device *driver.Device, c *kerneltest.Case) ([][]float64, error) {
	source, err := cudacpp.Print(c.Kernel)
	if err != nil {
		return nil, err
	}
	f, err := device.Compile(source, cudacpp.EntryPoint(c.Kernel))
	if err != nil {
		return nil, err
	}
	var args []driver.Ptr
	var contents [][]byte
	for i, a := range c.Storage() {
		data := kerneltest.Encode(a.DType, c.Arrays[i])
		p, err := device.Alloc(len(data))
		if err != nil {
			return nil, err
		}
		defer device.Free(p)
		if err := device.Write(p, data); err != nil {
			return nil, err
		}
		args, contents = append(args, p), append(contents, data)
	}
	params := cudacpp.Params(c.Kernel, c.Scalars, c.Counters)
	if err := device.Launch(f, c.Kernel.Groups, c.Kernel.Workgroup, args, params); err != nil {
		return nil, err
	}
	var got [][]float64
	for i, a := range c.Storage() {
		if err := device.Read(contents[i], args[i]); err != nil {
			return nil, err
		}
		got = append(got, kerneltest.Decode(a.DType, contents[i]))
	}
	return got, nil
}

func TestParamsAreLaidOutAsTheStruct(t *testing.T) {
	k := &kernel.Kernel{
		Scalars:  []dtype.DType{dtype.F32, dtype.F64, dtype.Bool, dtype.Invalid, dtype.I32},
		Counters: 2,
	}
	scalars := []scalar.Value{{F: 1}, {F: -2}, {I: 1}, {}, {I: -3}}
	want := []byte{
		0, 0, 0x80, 0x3f, 0, 0, 0, 0, // float, and to the next multiple of 8
		0, 0, 0, 0, 0, 0, 0, 0xc0, // double
		1, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0xff, 0xff, 0xff, // bool, unread, int
		7, 0, 0, 0, 9, 0, 0, 0,
	}
	if got := cudacpp.Params(k, scalars, []int{7, 9}); !slices.Equal(got, want) {
		t.Errorf("% x, not % x", got, want)
	}
}
