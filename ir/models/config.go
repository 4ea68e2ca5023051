package models

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
)

// Kind is the kind of a model, by its inputs and results.
type Kind string

// The kinds of models.
const (
	// TextKind is for encoders of texts: [Config.Text].
	TextKind Kind = "text"
	// ImageKind is for encoders of images: [Config.Image].
	ImageKind Kind = "image"
	// ImageTextKind is for encoders of images and texts into one space: [Config.ImageText].
	ImageTextKind Kind = "image and text"
	// SpeechKind is for models that write down speech: [Config.Speech].
	SpeechKind Kind = "speech"
)

// Config describes a model: of the pointers one is not nil. [ReadConfig] returns one.
type Config struct {
	// Architecture is the model_type of config.json, one of [Architectures].
	Architecture string
	Text         *Text
	Image        *Image
	ImageText    *ImageText
	Speech       *Speech
}

// Kind returns the kind of the model.
func (c Config) Kind() Kind {
	switch {
	case c.Text != nil:
		return TextKind
	case c.Image != nil:
		return ImageKind
	case c.ImageText != nil:
		return ImageTextKind
	}
	return SpeechKind
}

// Check returns nil if the model can be built. The error is of kind [lm.ErrConfig] and names the
// field, its value and its domain, or of kind [ir.ErrUnsupported] for an unknown architecture.
func (c Config) Check() error {
	if _, err := familyOf(c.Architecture); err != nil {
		return err
	}
	switch {
	case c.Text != nil:
		return c.Text.Check()
	case c.Image != nil:
		return c.Image.Check()
	case c.ImageText != nil:
		return c.ImageText.Check()
	case c.Speech != nil:
		return c.Speech.Check()
	}
	return badConfig("Text, Image, ImageText and Speech are nil: one of them must be given")
}

// Tower describes a stack of transformer blocks.
type Tower struct {
	// Width is the number of features of a position, Hidden that within an MLP.
	Width, Hidden int
	// Layers is the number of blocks, Heads that of heads of attention, and HeadSize the number of
	// features of each.
	Layers, Heads, HeadSize int
	// Epsilon is added to variances; 0 means 1e-5.
	Epsilon float64
	// Activation is the function in the MLP, by its name in config.json: "gelu", "gelu_new",
	// "gelu_pytorch_tanh", "quick_gelu", "relu", "silu".
	Activation string
}

// Upper bounds of a configuration, against files that ask for absurd amounts of memory.
const (
	maxLayers   = 4096
	maxHeads    = 1 << 14
	maxFeatures = 1 << 22
	maxTokens   = 1 << 28
	maxPixels   = 1 << 14
	maxLabels   = 1 << 20
)

// Check returns nil if the blocks can be built, or an error of kind [lm.ErrConfig].
func (t Tower) Check() error {
	err := within(
		field{"Width", t.Width, 1, maxFeatures}, field{"Hidden", t.Hidden, 1, maxFeatures}, field{"Layers", t.Layers, 0, maxLayers},
		field{"Heads", t.Heads, 1, maxHeads}, field{"HeadSize", t.HeadSize, 1, maxFeatures},
	)
	switch {
	case err != nil:
		return err
	case t.Heads*t.HeadSize > maxFeatures:
		return badConfig("Heads is %d and HeadSize %d: their product must be at most %d", t.Heads, t.HeadSize, maxFeatures)
	case !(t.Epsilon >= 0) || math.IsInf(t.Epsilon, 0):
		return badConfig("Epsilon is %v: it must be finite and not negative", t.Epsilon)
	}
	return checkActivation(t.Activation)
}

func checkActivation(name string) error {
	if activations[name] == nil {
		return ir.Errorf(ir.ErrUnsupported, "the activation is %q: it must be one of %s", name, known(activations))
	}
	return nil
}

// field is a number of a configuration with its bounds.
type field struct {
	name             string
	value, low, high int
}

func within(fields ...field) error {
	for _, f := range fields {
		if f.value < f.low || f.value > f.high {
			return badConfig("%s is %d: it must be in [%d, %d]", f.name, f.value, f.low, f.high)
		}
	}
	return nil
}

func badConfig(text string, args ...any) error { return ir.Errorf(lm.ErrConfig, text, args...) }
