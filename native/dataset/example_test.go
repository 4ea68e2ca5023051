package dataset_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/rlx-go/rlx/native/dataset"
)

func ExampleReadCSV() {
	file := "length,width,kind\n5.1,3.5,setosa\n7.0,3.2,versicolor\n"
	data, err := dataset.ReadCSV(strings.NewReader(file), dataset.CSVOptions{Header: true, Columns: []dataset.Column{
		{Name: "x", Fields: []string{"length", "width"}},
		{Name: "labels", Fields: []string{"kind"}, Classes: []string{"setosa", "versicolor"}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	labels, err := data["labels"].Int32s()
	fmt.Println(data["x"], labels, err)
	// Output: f32[2,2] [0 1] <nil>
}
