//go:build cgo && linux && (amd64 || arm64)

package cudacpp_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native/backendtest"
)

func TestGPUKernelsEqualPlainLoops(t *testing.T) {
	gpu := open(t)
	for _, c := range slices.Concat(kerneltest.Cases(), kerneltest.Wide(), kerneltest.AtomicFloats(), kerneltest.Relays(), kerneltest.Products(), kerneltest.HalfProducts()) {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			if err := c.Compare(gpu.run(t, c)); err != nil {
				t.Error(err)
			}
		})
	}
}

// gpu is a device with a stream.
type gpu struct {
	*driver.Device
	stream *driver.Stream
}

// open returns the GPU. Without one the test fails where RLX_REQUIRE names cuda,
// and is skipped elsewhere.
func open(t *testing.T) gpu {
	t.Helper()
	library, err := driver.Load()
	var d *driver.Device
	if err == nil {
		d, err = library.Open(0)
	}
	backendtest.Require(t, "cuda", err)
	t.Log(d.Name)
	s, err := d.NewStream()
	must(t, err)
	t.Cleanup(func() { must(t, s.Destroy()) })
	return gpu{d, s}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memory returns device memory with the given contents.
func (g gpu) memory(t *testing.T, data []byte) driver.Ptr {
	p, err := g.Alloc(max(len(data), 1))
	must(t, err)
	t.Cleanup(func() { must(t, g.Release(p)) })
	must(t, g.stream.Write(p, data))
	return p
}

// maps returns the tensor maps of a kernel.
func (g gpu) maps(t *testing.T, k *loop.Kernel, arrays []driver.Ptr) (out []driver.Map) {
	for _, b := range k.TensorMaps {
		m, err := g.NewMap(&b, k.Arrays[b.Array].DType, arrays[b.Array])
		must(t, err)
		out = append(out, m)
	}
	return out
}

// run launches the kernel of a case and returns its arrays.
func (g gpu) run(t *testing.T, c *kerneltest.Case) [][]float64 {
	source, err := cudacpp.Print(c.Kernel)
	must(t, err)
	image, err := g.Compiler.Compile(source, g.Compiler.Code, cudacpp.Options(g.Compiler.Code.Architecture(g.HasWgmma()))...)
	must(t, err)
	m, err := g.LoadModule(image)
	must(t, err)
	f, err := m.Function(cudacpp.EntryPoint(c.Kernel), cudacpp.DynamicShared(c.Kernel.SharedBytes()))
	must(t, err)
	var args []driver.Ptr
	var contents [][]byte
	for i, a := range c.Storage() {
		data := kerneltest.Encode(a.DType, c.Arrays[i])
		args, contents = append(args, g.memory(t, data)), append(contents, data)
	}
	storage := args
	if len(c.Kernel.Scalars) > 0 {
		args = append(args[:len(args):len(args)], g.memory(t, cudacpp.Scalars(c.Kernel, c.Scalars)))
	}
	must(t, g.stream.Launch(f, c.Kernel.Groups, c.Kernel.Workgroup, args, c.Counters[:c.Kernel.Counters], g.maps(t, c.Kernel, storage)...))
	var got [][]float64
	for i, a := range c.Storage() {
		must(t, g.stream.Read(contents[i], storage[i]))
		got = append(got, kerneltest.Decode(a.DType, contents[i]))
	}
	must(t, m.Unload())
	return got
}
