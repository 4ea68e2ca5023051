package mil

import "google.golang.org/protobuf/encoding/protowire"

// Numbers of the fields that rlx writes and reads, named as in Model.proto, FeatureTypes.proto and
// MIL.proto.
const (
	modelSpecificationVersion protowire.Number = 1
	modelDescription          protowire.Number = 2
	modelMLProgram            protowire.Number = 502

	descriptionInput           protowire.Number = 1
	descriptionOutput          protowire.Number = 10
	descriptionState           protowire.Number = 13
	descriptionFunctions       protowire.Number = 20
	descriptionDefaultFunction protowire.Number = 21
	descriptionMetadata        protowire.Number = 100
	metadataUserDefined        protowire.Number = 100

	functionName   protowire.Number = 1
	functionInput  protowire.Number = 2
	functionOutput protowire.Number = 3
	functionState  protowire.Number = 6

	featureName       protowire.Number = 1
	featureType       protowire.Number = 3
	featureMultiArray protowire.Number = 5
	featureState      protowire.Number = 8
	stateArray        protowire.Number = 1
	arrayShape        protowire.Number = 1
	arrayDataType     protowire.Number = 2

	programVersion   protowire.Number = 1
	programFunctions protowire.Number = 2

	milFunctionInputs protowire.Number = 1
	milFunctionOpset  protowire.Number = 2
	milFunctionBlocks protowire.Number = 3

	blockOutputs    protowire.Number = 2
	blockOperations protowire.Number = 3

	operationType       protowire.Number = 1
	operationInputs     protowire.Number = 2
	operationOutputs    protowire.Number = 3
	operationAttributes protowire.Number = 5
	argumentBindings    protowire.Number = 1
	bindingName         protowire.Number = 1
	namedName           protowire.Number = 1
	namedValueType      protowire.Number = 2

	typeTensor       protowire.Number = 1
	typeState        protowire.Number = 5
	stateWrapped     protowire.Number = 1
	tensorDataType   protowire.Number = 1
	tensorRank       protowire.Number = 2
	tensorDimensions protowire.Number = 3
	dimensionConst   protowire.Number = 1
	constantSize     protowire.Number = 1

	valueType       protowire.Number = 2
	valueImmediate  protowire.Number = 3
	valueBlob       protowire.Number = 5
	immediateTensor protowire.Number = 1
	blobFileName    protowire.Number = 1
	blobOffset      protowire.Number = 2
	tensorFloats    protowire.Number = 1
	tensorInts      protowire.Number = 2
	tensorBools     protowire.Number = 3
	tensorStrings   protowire.Number = 4
	tensorBytes     protowire.Number = 7
	repeatedValues  protowire.Number = 1

	mapKey   protowire.Number = 1
	mapValue protowire.Number = 2
)

// The element types of a multi-array, from FeatureTypes.proto.
var arrayTypes = map[DType]uint64{Float32: 65568, Float16: 65552, Int32: 131104}

// weightFile is the name by which a program refers to the file of weights in its package.
const weightFile = "@model_path/weights/weight.bin"
