package models

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"math"
	"path/filepath"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
)

// Preprocessing describes how an image becomes the input of a model: it is resized, cut, scaled and normalised, as
// preprocessor_config.json says.
type Preprocessing struct {
	// Resize is the height and width to which an image is resized; Shortest is the size of its shorter
	// side instead, where Resize is zero. With both zero an image keeps its size.
	Resize   [2]int
	Shortest int
	// Filter is how pixels are computed in between.
	Filter Filter
	// Crop is the height and width of the part in the middle that is kept, with black around an image that
	// is smaller; zero keeps all.
	Crop [2]int
	// Scale multiplies the values of pixels, 0 to 255; 0 means 1.
	Scale float64
	// Mean is subtracted from each channel, which is then divided by Deviation; nil disables both.
	Mean, Deviation []float64
}

// Filter is a way to resize images.
type Filter int

// The filters, by their numbers in preprocessor_config.json.
const (
	Nearest  Filter = 0
	Lanczos  Filter = 1
	Bilinear Filter = 2
	Bicubic  Filter = 3
)

// filters are the functions of the distance from a pixel, and beyond which they are 0.
var filters = map[Filter]struct {
	support float64
	weight  func(x float64) float64
}{
	Lanczos: {3, func(x float64) float64 {
		if x == 0 {
			return 1
		}
		p := math.Pi * x
		return 3 * math.Sin(p) * math.Sin(p/3) / (p * p)
	}},
	Bilinear: {1, func(x float64) float64 { return 1 - x }},
	Bicubic: {2, func(x float64) float64 { // Keys' cubic convolution with a = −1/2
		if x < 1 {
			return (1.5*x-2.5)*x*x + 1
		}
		return ((-0.5*x+2.5)*x-4)*x + 2
	}},
}

// sides is a size of preprocessor_config.json: a number or an object.
type sides struct{ Height, Width, Shortest int }

// UnmarshalJSON implements [json.Unmarshaler].
func (s *sides) UnmarshalJSON(data []byte) error {
	var n int
	if json.Unmarshal(data, &n) == nil {
		s.Shortest = n
		return nil
	}
	var o struct {
		Height   int `json:"height"`
		Width    int `json:"width"`
		Shortest int `json:"shortest_edge"`
	}
	err := json.Unmarshal(data, &o)
	*s = sides(o)
	return err
}

// PreprocessingOf returns what preprocessor_config.json says of images. The error is of kind
// [ir.ErrUnsupported] for a model that reads none, or those of a malformed file.
func PreprocessingOf(m *Model) (Preprocessing, error) {
	if m == nil {
		return Preprocessing{}, ir.Attrf("the model is nil: it must be from Open")
	}
	switch {
	case m.Config.Image != nil:
		return preprocessing(m.Folder, m.Config.Image.Size, hfPixels{Filter: Bilinear, Factor: 1. / 255, Mean: []float64{0.5, 0.5, 0.5}, Deviation: []float64{0.5, 0.5, 0.5}})
	case m.Config.ImageText != nil:
		return preprocessing(m.Folder, m.Config.ImageText.Image.Size, hfPixels{
			Filter: Bicubic, Factor: 1. / 255, Crop: true, Size: &sides{Shortest: 224},
			Mean: []float64{0.48145466, 0.4578275, 0.40821073}, Deviation: []float64{0.26862954, 0.26130258, 0.27577711},
		})
	}
	return Preprocessing{}, ir.Errorf(ir.ErrUnsupported, "%s reads no images", m.Folder)
}

// hfPixels is preprocessor_config.json. Missing fields have the defaults of the model's processor.
type hfPixels struct {
	Resize    *bool     `json:"do_resize"`
	Size      *sides    `json:"size"`
	Filter    Filter    `json:"resample"`
	Crop      bool      `json:"do_center_crop"`
	CropSize  *sides    `json:"crop_size"`
	Rescale   *bool     `json:"do_rescale"`
	Factor    float64   `json:"rescale_factor"`
	Normalize *bool     `json:"do_normalize"`
	Mean      []float64 `json:"image_mean"`
	Deviation []float64 `json:"image_std"`
}

// preprocessing reads preprocessor_config.json for images of a size.
func preprocessing(folder string, size [2]int, c hfPixels) (Preprocessing, error) {
	if err := readJSON(filepath.Join(folder, "preprocessor_config.json"), &c, true); err != nil {
		return Preprocessing{}, err
	}
	on := func(b *bool) bool { return b == nil || *b }
	p := Preprocessing{Filter: c.Filter}
	if on(c.Resize) {
		p.Resize = size
		if c.Size != nil {
			p.Resize, p.Shortest = [2]int{c.Size.Height, c.Size.Width}, c.Size.Shortest
		}
		if p.Resize == [2]int{} && !c.Crop { // a number alone, in old files of models that do not cut
			p.Resize = [2]int{p.Shortest, p.Shortest}
		}
	}
	if c.Crop {
		p.Crop = size
		if s := c.CropSize; s != nil {
			p.Crop = [2]int{max(s.Height, s.Shortest), max(s.Width, s.Shortest)}
		}
	}
	if on(c.Rescale) {
		p.Scale = c.Factor
	}
	if on(c.Normalize) {
		p.Mean, p.Deviation = c.Mean, c.Deviation
	}
	return p, p.check()
}

// maxSide bounds the sides of images.
const maxSide = 1 << 14

func (p Preprocessing) check() error {
	for _, n := range []int{p.Resize[0], p.Resize[1], p.Shortest, p.Crop[0], p.Crop[1]} {
		if n < 0 || n > maxSide {
			return ir.Errorf(lm.ErrConfig, "a size of images is %d: it must be in [0, %d]", n, maxSide)
		}
	}
	for _, size := range [][2]int{p.Resize, p.Crop} {
		if (size[0] == 0) != (size[1] == 0) {
			return ir.Errorf(lm.ErrConfig, "a size of images is %d by %d: both must be 0 or neither", size[0], size[1])
		}
	}
	if _, ok := filters[p.Filter]; !ok && p.Filter != Nearest {
		return ir.Errorf(ir.ErrUnsupported, "the filter is %d: it must be 0 to 3", p.Filter)
	}
	for i, list := range [][]float64{p.Mean, p.Deviation} {
		if list != nil && len(list) != 3 {
			return ir.Errorf(lm.ErrConfig, "the mean or deviation has %d channels: it must have 3", len(list))
		}
		for _, x := range list {
			if i == 1 && !(x > 0) {
				return ir.Errorf(lm.ErrConfig, "a deviation is %v: it must be positive", x)
			}
		}
	}
	return nil
}

// Pixels returns an image as the input of a model: three channels, each [height, width], one after the other,
// with that height and width. Pixels are resized as Pillow does, with 8 bits between the axes. What is
// transparent is black. The error is of kind [ir.ErrShape] for an empty image or one with a side above 16,384.
func (p Preprocessing) Pixels(from image.Image) (x []float32, height, width int, err error) {
	if err := p.check(); err != nil {
		return nil, 0, 0, err
	}
	if from == nil || from.Bounds().Empty() || from.Bounds().Dx() > maxSide || from.Bounds().Dy() > maxSide {
		return nil, 0, 0, ir.Shapef("an image is nil, empty or larger than %d on a side", maxSide)
	}
	g := gridOf(from)
	switch long, short := max(g.height, g.width), min(g.height, g.width); {
	case p.Resize != [2]int{}:
		g = g.resized(p.Filter, p.Resize[0], p.Resize[1])
	case p.Shortest > 0 && g.height == short:
		g = g.resized(p.Filter, p.Shortest, min(p.Shortest*long/short, maxSide))
	case p.Shortest > 0:
		g = g.resized(p.Filter, min(p.Shortest*long/short, maxSide), p.Shortest)
	}
	if p.Crop != [2]int{} {
		g = g.cropped(p.Crop[0], p.Crop[1])
	}
	return p.floats(g), g.height, g.width, nil
}

// floats scales and normalises the channels.
func (p Preprocessing) floats(g grid) []float32 {
	n := g.height * g.width
	x := make([]float32, 3*n)
	scale := p.Scale
	if scale == 0 {
		scale = 1
	}
	for c := range 3 {
		mean, deviation := 0., 1.
		if p.Mean != nil && p.Deviation != nil {
			mean, deviation = p.Mean[c], p.Deviation[c]
		}
		for i := range n {
			x[c*n+i] = float32((float64(g.data[3*i+c])*scale - mean) / deviation)
		}
	}
	return x
}

// grid is an image of red, green and blue bytes. As Pillow's convert("RGB") does, it drops the opacity.
type grid struct {
	height, width int
	data          []uint8
}

func newGrid(height, width int) grid { return grid{height, width, make([]uint8, 3*height*width)} }

func gridOf(from image.Image) grid {
	b := from.Bounds()
	g := newGrid(b.Dy(), b.Dx())
	i := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(from.At(x, y)).(color.NRGBA)
			g.data[i], g.data[i+1], g.data[i+2] = c.R, c.G, c.B
			i += 3
		}
	}
	return g
}

// cropped returns the part in the middle.
func (g grid) cropped(height, width int) grid {
	out := newGrid(height, width)
	top, left := middle(g.height, height), middle(g.width, width)
	for y := range height {
		for x := range width {
			if from, at := y+top, x+left; from >= 0 && from < g.height && at >= 0 && at < g.width {
				copy(out.data[3*(y*width+x):][:3], g.data[3*(from*g.width+at):])
			}
		}
	}
	return out
}

// middle returns where a part begins, before the beginning if it is larger.
func middle(all, part int) int {
	if all >= part {
		return (all - part) / 2
	}
	return -((part - all + 1) / 2)
}

// resized returns the image in another size. The order of the axes affects rounding: the rule is
// that of Pillow 13, found by trying 400 sizes.
func (g grid) resized(by Filter, height, width int) grid {
	if height < g.height && g.height-height > 2*(g.width-width) {
		return g.alongColumns(by, height).alongRows(by, width)
	}
	return g.alongRows(by, width).alongColumns(by, height)
}

func (g grid) alongColumns(by Filter, height int) grid {
	if height == g.height {
		return g
	}
	return g.transposed().alongRows(by, height).transposed()
}

func (g grid) transposed() grid {
	out := newGrid(g.width, g.height)
	for y := range g.height {
		for x := range g.width {
			copy(out.data[3*(x*g.height+y):][:3], g.data[3*(y*g.width+x):])
		}
	}
	return out
}

// fraction is the number of bits after the point of the weights.
const fraction = 22

// taps are the pixels that one is computed from, and their weights.
type taps struct {
	from    int
	weights []int64
}

// alongRows resizes the rows.
func (g grid) alongRows(by Filter, width int) grid {
	if width == g.width {
		return g
	}
	out := newGrid(g.height, width)
	all := tapsOf(by, g.width, width)
	for y := range g.height {
		row := g.data[3*y*g.width:][:3*g.width]
		for x, t := range all {
			for c := range 3 {
				sum := int64(1) << (fraction - 1)
				for i, w := range t.weights {
					sum += w * int64(row[3*(t.from+i)+c])
				}
				out.data[3*(y*width+x)+c] = uint8(min(max(sum>>fraction, 0), 255))
			}
		}
	}
	return out
}

// tapsOf returns the filter taps of each pixel of a resized row: the filter is as wide as the
// distance of pixels in the source, at least one.
func tapsOf(by Filter, from, to int) []taps {
	all := make([]taps, to)
	step := float64(from) / float64(to)
	f, ok := filters[by]
	at := 0.5 * step // summed up, as Pillow does for the nearest pixel
	for i := range all {
		if !ok {
			all[i] = taps{min(int(at), from-1), []int64{1 << fraction}}
			at += step
			continue
		}
		center := (float64(i) + 0.5) * step
		wide := max(step, 1)
		low, high := max(int(center-f.support*wide+0.5), 0), min(int(center+f.support*wide+0.5), from)
		weights, sum := make([]float64, high-low), 0.
		for j := range weights {
			if x := math.Abs((float64(low+j) - center + 0.5) / wide); x < f.support {
				weights[j] = f.weight(x)
			}
			sum += weights[j]
		}
		all[i] = taps{low, make([]int64, len(weights))}
		for j, w := range weights {
			all[i].weights[j] = int64(math.Round(w / sum * (1 << fraction)))
		}
	}
	return all
}

// String names a filter.
func (f Filter) String() string {
	if f >= Nearest && f <= Bicubic {
		return [...]string{"nearest", "lanczos", "bilinear", "bicubic"}[f]
	}
	return fmt.Sprintf("Filter(%d)", int(f))
}
