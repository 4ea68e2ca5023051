package main

import (
	"flag"
	"fmt"

	"github.com/rlx-go/rlx"
)

// options are the flags of the command line.
type options struct {
	size, device, text string
	steps              int // -1 for the default of the size
	seed               uint32
	every              int // steps between two measurements on the held-out text
	save, load         string
	prompt             string
	length             int
	temperature        float64
	precision          string
	patience           int // measurements without a better one; 0 for any number
	profile            bool
}

// precisions are the precisions of products, by name.
var precisions = map[string]rlx.Precision{
	"f32": rlx.AsWritten, "tf32": rlx.TF32, "bf16": rlx.MixedBF16, "f16": rlx.MixedF16,
}

// parse returns the options of a command line. For an invalid one it ends the process, as package
// flag does.
func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("gpt", flag.ExitOnError)
	f.StringVar(&o.size, "size", "small", "model: small or full")
	f.StringVar(&o.device, "device", "auto", "device: auto, cpu, webgpu or cuda")
	f.StringVar(&o.text, "text", "", "text file to learn from, in place of Shakespeare")
	f.IntVar(&o.steps, "steps", -1, "training steps in all; -1 for 1000 of the small model, 5000 of the full one")
	seed := f.Uint("seed", 1, "seed of weights, batches and dropout, below 2³²")
	f.IntVar(&o.every, "every", 250, "steps between two measurements on the text held out, each with a sample")
	f.StringVar(&o.save, "save", "", "write what was learned to this safetensors file, at every measurement too")
	f.StringVar(&o.load, "load", "", "go on from this safetensors file, written by -save")
	f.StringVar(&o.prompt, "prompt", "\n", "what samples begin with")
	f.IntVar(&o.length, "length", 300, "characters of a sample")
	f.Float64Var(&o.temperature, "temperature", 0.8, "above 0; less than 1 makes samples more cautious")
	f.StringVar(&o.precision, "precision", "f32", "type that products are computed in: f32, tf32, bf16 or f16")
	f.IntVar(&o.patience, "patience", 0, "end after this number of measurements in a row without an improvement, with the best parameters; 0 never does")
	f.BoolVar(&o.profile, "profile", false, "show at the end where the time of a step goes, on devices that report it")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.seed = uint32(*seed); uint(o.seed) != *seed {
		return o, fmt.Errorf("seed %d does not fit 32 bits", *seed)
	}
	return o, nil
}
