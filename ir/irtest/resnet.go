package irtest

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ResNet is a residual network for images (He, Zhang, Ren and Sun, Deep Residual Learning
// for Image Recognition), channels last: a convolution of 7×7 and a pool, four stages of
// blocks, and a classifier. Sizes are PyTorch's torchvision.models.resnet18 and resnet50.
type ResNet struct {
	Batch, Size int
	Blocks      [4]int // of each stage
	// Bottleneck says that a block is three convolutions, of 1×1, 3×3 and 1×1 with four times
	// the channels, and not two of 3×3.
	Bottleneck bool
	// Width is how many channels the first stage has, 0 for 64.
	Width   int
	Classes int
}

// ResNet18 and ResNet50 train on images of 224 × 224.
var (
	ResNet18 = ResNet{Batch: 64, Size: 224, Blocks: [4]int{2, 2, 2, 2}, Classes: 1000}
	ResNet50 = ResNet{Batch: 64, Size: 224, Blocks: [4]int{3, 4, 6, 3}, Bottleneck: true, Classes: 1000}
)

// Loss returns the graph of the mean cross-entropy, output "loss", with the running
// statistics of its batch norms as states: inputs "x", f32[batch,size,size,3], and
// "labels", i32[batch].
func (r ResNet) Loss() (*ir.Graph, error) {
	return ir.Build("resnet", func(b *ir.Builder) {
		h, labels := b.Input("x", ir.F32, ir.Dims(r.Batch, r.Size, r.Size, 3)...), b.Input("labels", ir.I32, ir.N(r.Batch))
		width := r.Width
		if width == 0 {
			width = 64
		}
		h = ops.Relu(b, convNorm(b, "stem", h, 7, width, 2))
		h = ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		for stage, blocks := range r.Blocks {
			for i := range blocks {
				stride := 1
				if i == 0 && stage > 0 {
					stride = 2
				}
				h = r.block(b, fmt.Sprintf("s%db%d", stage, i), h, width<<stage, stride)
			}
		}
		h = ops.Mean(b, h, 1, 2)
		features, _ := h.Dim(-1 + h.Rank()).Const()
		h = ops.Linear(b, h, b.Param("head/w", ir.F32, ir.Dims(features, r.Classes)...), b.Param("head/b", ir.F32, ir.N(r.Classes)))
		b.Output("loss", ops.CrossEntropyMean(b, h, labels))
	})
}

// block adds convolutions of h to h, or to a projection of it where shapes differ.
func (r ResNet) block(b *ir.Builder, name string, h ir.Value, channels, stride int) ir.Value {
	y, out := h, channels
	if r.Bottleneck {
		out = 4 * channels
		y = ops.Relu(b, convNorm(b, name+"a", y, 1, channels, 1))
		y = ops.Relu(b, convNorm(b, name+"b", y, 3, channels, stride))
		y = convNorm(b, name+"c", y, 1, out, 1)
	} else {
		y = ops.Relu(b, convNorm(b, name+"a", y, 3, out, stride))
		y = convNorm(b, name+"b", y, 3, out, 1)
	}
	if !h.Dim(3).Is(out) || stride != 1 {
		h = convNorm(b, name+"p", h, 1, out, stride)
	}
	return ops.Relu(b, ops.Add(b, y, h))
}

// convNorm is a convolution of windows of size × size without a bias, and a batch norm.
func convNorm(b *ir.Builder, name string, x ir.Value, size, channels, stride int) ir.Value {
	in, _ := x.Dim(3).Const()
	pad := []int{size / 2, size / 2}
	x = ops.Conv2D(b, x, b.Param(name+"/w", ir.F32, ir.Dims(size, size, in, channels)...), ir.Value{},
		ops.Conv2DAttrs{Strides: []int{stride, stride}, PadLo: pad, PadHi: pad})
	vector := func(what string) ir.Value { return b.Param(name+"/"+what, ir.F32, ir.N(channels)) }
	state := func(what string) ir.Value { return b.State(name+"/"+what, ir.F32, ir.N(channels)) }
	mean, variance := state("mean"), state("variance")
	y, mean, variance := ops.BatchNormTraining(b, x, vector("scale"), vector("bias"), mean, variance, ops.BatchNormAttrs{})
	b.SetState(name+"/mean", mean)
	b.SetState(name+"/variance", variance)
	return y
}
