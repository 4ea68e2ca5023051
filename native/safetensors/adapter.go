package safetensors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/internal/wholefile"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// The files of an adapter, in its folder, and the beginning of its names: PEFT wraps a model twice.
const (
	adapterFile   = "adapter_model.safetensors"
	adapterConfig = "adapter_config.json"
	adapterPrefix = "base_model.model."
)

// The names of an adapter's matrices end so, in nn and in files.
var (
	adapterEnds = []string{"/lora_A/weight", "/lora_B/weight"}
	adapterDots = []string{".lora_A.weight", ".lora_B.weight"}
)

// Adapter is the low-rank matrices of a fine-tuned model and their options, those of nn.LoRAOptions.
type Adapter struct {
	// Tensors has the matrices by their names in nn: "SCOPE/lora_A/weight" [in, rank] and
	// "SCOPE/lora_B/weight" [rank, out].
	Tensors map[string]native.Tensor
	// Rank is the rank of the matrices; [WriteAdapter] takes 0 for that which they have.
	Rank int
	// Alpha divided by Rank scales the added term; 0 means Rank, a scale of 1.
	Alpha float64
	// Dropout is the rate at which inputs of the matrices were dropped.
	Dropout float64
	// Base names the model that the adapter belongs to, and Task is PEFT's name of what it does, such
	// as "CAUSAL_LM". Both may be "".
	Base, Task string
	// InOut means that the model in PyTorch has weights [in, out], as GPT-2 has.
	InOut bool
}

// Rename replaces From by To at the beginning of a scope: whole parts of a path, separated by slashes.
// Of several, the first that fits is used.
type Rename struct{ From, To string }

// config is an adapter_config.json: https://huggingface.co/docs/peft/package_reference/lora.
type config struct {
	Type    string   `json:"peft_type"`
	Task    *string  `json:"task_type"`
	Base    string   `json:"base_model_name_or_path"`
	Rank    int      `json:"r"`
	Alpha   float64  `json:"lora_alpha"`
	Dropout float64  `json:"lora_dropout"`
	Bias    string   `json:"bias"`
	InOut   bool     `json:"fan_in_fan_out"`
	Infer   bool     `json:"inference_mode"`
	Targets any      `json:"target_modules"` // a list, or a pattern
	Saved   []string `json:"modules_to_save"`

	RootScale bool               `json:"use_rslora,omitempty"`
	Magnitude bool               `json:"use_dora,omitempty"`
	Ranks     map[string]int     `json:"rank_pattern,omitempty"`
	Alphas    map[string]float64 `json:"alpha_pattern,omitempty"`
}

// WriteAdapter writes the files adapter_model.safetensors and adapter_config.json to a folder, which
// it makes if it does not exist, as PEFT reads them. Slashes of names become dots, matrices their transposes. Tensors
// with other names are left out, so that all parameters of a program may be given. Renames map scopes
// to those of the model in PyTorch. The error is of kind [ir.ErrName] if there are no matrices, one of a pair
// is missing, or two have one new name, [ir.ErrShape] if shapes do not agree on a rank, and those of the file system.
func WriteAdapter(folder string, a Adapter, renames ...Rename) error {
	out, matrices, scopes, c := map[string]native.Tensor{}, map[string]native.Tensor{}, []string{}, config{
		Type: "LORA", Base: a.Base, Rank: a.Rank, Alpha: a.Alpha, Dropout: a.Dropout, Bias: "none", InOut: a.InOut, Infer: true,
	}
	if a.Task != "" {
		c.Task = &a.Task
	}
	for _, name := range slices.Sorted(maps.Keys(a.Tensors)) {
		scope, which, ok := cutEnd(name, adapterEnds)
		if !ok {
			continue
		}
		x, err := transposed(name, a.Tensors[name])
		if err != nil {
			return err
		}
		c.Rank = cmp.Or(c.Rank, x.Dims[which])
		path := strings.ReplaceAll(renamed(scope, renames), "/", ".")
		to := adapterPrefix + path + adapterDots[which]
		if _, twice := out[to]; twice {
			return ir.Errorf(ir.ErrName, "two tensors have the name %q; the second is %q", to, name)
		}
		out[to], matrices[name] = x, a.Tensors[name]
		if which == 0 {
			scopes = append(scopes, path)
		}
	}
	if err := checkPairs(matrices, adapterEnds, [2]int{1, 0}, c.Rank); err != nil {
		return err
	}
	c.Alpha, c.Targets = cmp.Or(c.Alpha, float64(c.Rank)), targets(scopes)
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return ir.Attrf("adapter: %v", err)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(folder, adapterFile), out, map[string]string{"format": "pt"}); err != nil {
		return err
	}
	return wholefile.Replace(filepath.Join(folder, adapterConfig), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// ReadAdapter reads the files that [WriteAdapter] or PEFT's save_pretrained wrote to a folder. Matrices
// become f32, and their names those in nn. Renames map scopes of the model in PyTorch, such as
// "model/layers/0/mlp", to those of the graph. The error is of kind [ErrDamaged] for a malformed file,
// [ir.ErrUnsupported] for an adapter that nn.LoRA is not, such as DoRA or one with several ranks,
// [ir.ErrName] and [ir.ErrShape] as of WriteAdapter, and those of [Open].
func ReadAdapter(folder string, renames ...Rename) (a Adapter, err error) {
	c, err := readConfig(filepath.Join(folder, adapterConfig))
	if err != nil {
		return Adapter{}, err
	}
	f, err := Open(filepath.Join(folder, adapterFile))
	if err != nil {
		return Adapter{}, err
	}
	defer f.Close() // the tensors are copies
	a = Adapter{Tensors: map[string]native.Tensor{}, Rank: c.Rank, Alpha: c.Alpha, Dropout: c.Dropout, Base: c.Base, InOut: c.InOut}
	if c.Task != nil {
		a.Task = *c.Task
	}
	if c.RootScale { // the scale is alpha/√rank
		a.Alpha *= math.Sqrt(float64(c.Rank))
	}
	for _, name := range f.Names() {
		scope, which, ok := cutEnd(strings.TrimPrefix(name, adapterPrefix), adapterDots)
		if !ok {
			return Adapter{}, ir.Errorf(ir.ErrUnsupported, "tensor %q: names must end in %q", name, adapterDots)
		}
		x, err := f.As(name, ir.F32)
		if err == nil {
			x, err = transposed(name, x)
		}
		if err != nil {
			return Adapter{}, err
		}
		to := renamed(strings.ReplaceAll(scope, ".", "/"), renames) + adapterEnds[which]
		if _, twice := a.Tensors[to]; twice {
			return Adapter{}, ir.Errorf(ir.ErrName, "two tensors have the name %q; the second is %q", to, name)
		}
		a.Tensors[to] = x
	}
	return a, checkPairs(a.Tensors, adapterEnds, [2]int{1, 0}, c.Rank)
}

// readConfig reads an adapter_config.json and checks that [Adapter] can represent it.
func readConfig(name string) (c config, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return config{}, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return config{}, damaged("%s: %v", name, err)
	}
	switch {
	case c.Type != "LORA":
		return config{}, ir.Errorf(ir.ErrUnsupported, "%s: peft_type is %q; it must be LORA", name, c.Type)
	case c.Magnitude, len(c.Ranks) > 0, len(c.Alphas) > 0, len(c.Saved) > 0, c.Bias != "" && c.Bias != "none":
		return config{}, ir.Errorf(ir.ErrUnsupported, "%s: use_dora, rank_pattern, alpha_pattern, modules_to_save and bias must be off or empty", name)
	case c.Rank < 1:
		return config{}, damaged("%s: r is %d; it must be 1 or more", name, c.Rank)
	}
	return c, nil
}

// checkPairs checks that there are matrices, each with its partner, all of one rank. rankAxis has
// the axis of the rank in the first and in the second matrix of a pair.
func checkPairs(tensors map[string]native.Tensor, ends []string, rankAxis [2]int, rank int) error {
	if len(tensors) == 0 {
		return ir.Errorf(ir.ErrName, "adapter: no tensor has a name that ends in %q", ends)
	}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		scope, which, _ := cutEnd(name, ends)
		if other := scope + ends[1-which]; tensors[other].Dims == nil {
			return ir.Errorf(ir.ErrName, "adapter: tensor %q lacks its partner %q", name, other)
		}
		if got := tensors[name].Dims[rankAxis[which]]; got != rank {
			return ir.Shapef("adapter: tensor %q has rank %d; it must be %d", name, got, rank)
		}
	}
	return nil
}

// cutEnd returns a name without the ending that it has, and which of them that is.
func cutEnd(name string, ends []string) (scope string, which int, ok bool) {
	for i, end := range ends {
		if scope, ok := strings.CutSuffix(name, end); ok {
			return scope, i, true
		}
	}
	return name, 0, false
}

// renamed returns a scope after the first rename that fits.
func renamed(scope string, renames []Rename) string {
	for _, r := range renames {
		if rest, ok := strings.CutPrefix(scope, r.From); ok && (rest == "" || rest[0] == '/') {
			return r.To + rest
		}
	}
	return scope
}

// targets returns target_modules of modules: their last parts, so that PEFT finds the layers of all
// blocks, and whole paths of those that are numbered.
func targets(paths []string) []string {
	out := []string{}
	for _, path := range paths {
		last := path[strings.LastIndexByte(path, '.')+1:]
		if strings.Trim(last, "0123456789") == "" {
			last = path
		}
		out = append(out, last)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// transposed returns a new matrix with rows and columns exchanged.
func transposed(name string, x native.Tensor) (native.Tensor, error) {
	if err := x.Check(); err != nil {
		return native.Tensor{}, fmt.Errorf("tensor %q: %w", name, err)
	}
	if len(x.Dims) != 2 {
		return native.Tensor{}, ir.Shapef("tensor %q is %s; it must be a matrix", name, x)
	}
	x.Data = permute.Axes(x.Data, x.DType.Size(), x.Dims, []int{1, 0})
	x.Dims = []int{x.Dims[1], x.Dims[0]}
	return x, nil
}
