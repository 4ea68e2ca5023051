// The part of Core ML that package driver uses, declared anew from Apple's documentation:
// the page of each declaration is its name under
// https://developer.apple.com/documentation/coreml. On a Mac Apple's own header is used.
#import <Foundation/Foundation.h>

// What package software keeps in objects: the Objective-C runtime on Linux wants it
// where a class is declared.
#ifndef RLX_KEEPS
#define RLX_KEEPS(class)
#endif

typedef NSInteger MLComputeUnits; // mlcomputeunits
enum { MLComputeUnitsCPUOnly = 0, MLComputeUnitsCPUAndGPU = 1, MLComputeUnitsAll = 2, MLComputeUnitsCPUAndNeuralEngine = 3 };

typedef NSInteger MLMultiArrayDataType; // mlmultiarraydatatype
enum { MLMultiArrayDataTypeFloat16 = 0x10000 | 16, MLMultiArrayDataTypeFloat32 = 0x10000 | 32, MLMultiArrayDataTypeInt32 = 0x20000 | 32 };

@interface MLMultiArray : NSObject RLX_KEEPS(MLMultiArray) // mlmultiarray
- (id)initWithDataPointer:(void *)dataPointer
                    shape:(NSArray *)shape
                 dataType:(MLMultiArrayDataType)dataType
                  strides:(NSArray *)strides
              deallocator:(void (^)(void *bytes))deallocator
                    error:(NSError **)error;
- (MLMultiArrayDataType)dataType;
- (NSArray *)shape;
- (NSArray *)strides; // in elements
- (void *)dataPointer;
@end

@interface MLFeatureValue : NSObject RLX_KEEPS(MLFeatureValue) // mlfeaturevalue
+ (MLFeatureValue *)featureValueWithMultiArray:(MLMultiArray *)value;
- (MLMultiArray *)multiArrayValue;
@end

@protocol MLFeatureProvider // mlfeatureprovider
- (MLFeatureValue *)featureValueForName:(NSString *)featureName;
@end

@interface MLDictionaryFeatureProvider : NSObject <MLFeatureProvider> RLX_KEEPS(MLDictionaryFeatureProvider) // mldictionaryfeatureprovider
- (id)initWithDictionary:(NSDictionary *)dictionary error:(NSError **)error;
@end

@interface MLPredictionOptions : NSObject RLX_KEEPS(MLPredictionOptions) // mlpredictionoptions
- (void)setOutputBackings:(NSDictionary *)backings; // macOS 11, iOS 16
@end

@interface MLModelConfiguration : NSObject RLX_KEEPS(MLModelConfiguration) // mlmodelconfiguration
- (void)setComputeUnits:(MLComputeUnits)units;
- (void)setFunctionName:(NSString *)name; // macOS 15, iOS 18
@end

// Kinds of processor: macOS 14, iOS 17.
@protocol MLComputeDeviceProtocol <NSObject> // mlcomputedeviceprotocol
@end

@interface MLNeuralEngineComputeDevice : NSObject <MLComputeDeviceProtocol> // mlneuralenginecomputedevice
- (NSInteger)totalCoreCount;
@end

@interface MLState : NSObject RLX_KEEPS(MLState) // mlstate: macOS 15, iOS 18
- (void)getMultiArrayForStateNamed:(NSString *)stateName handler:(void (^)(MLMultiArray *buffer))handler;
@end

@interface MLModel : NSObject RLX_KEEPS(MLModel) // mlmodel
+ (NSURL *)compileModelAtURL:(NSURL *)modelURL error:(NSError **)error;
+ (MLModel *)modelWithContentsOfURL:(NSURL *)url configuration:(MLModelConfiguration *)configuration error:(NSError **)error;
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input options:(MLPredictionOptions *)options error:(NSError **)error;
+ (NSArray *)availableComputeDevices; // of MLComputeDeviceProtocol: macOS 14, iOS 17
- (MLState *)newState; // macOS 15, iOS 18
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input
                                     usingState:(MLState *)state
                                        options:(MLPredictionOptions *)options
                                          error:(NSError **)error;
@end

// What a model will be run with: macOS 14.4, iOS 17.4.

@interface MLModelStructureProgramNamedValueType : NSObject RLX_KEEPS(MLModelStructureProgramNamedValueType) // mlmodelstructureprogramnamedvaluetype
- (NSString *)name;
@end

@interface MLModelStructureProgramOperation : NSObject RLX_KEEPS(MLModelStructureProgramOperation) // mlmodelstructureprogramoperation
- (NSString *)operatorName;
- (NSArray *)outputs; // of MLModelStructureProgramNamedValueType
@end

@interface MLModelStructureProgramBlock : NSObject RLX_KEEPS(MLModelStructureProgramBlock) // mlmodelstructureprogramblock
- (NSArray *)operations;
@end

@interface MLModelStructureProgramFunction : NSObject RLX_KEEPS(MLModelStructureProgramFunction) // mlmodelstructureprogramfunction
- (MLModelStructureProgramBlock *)block;
@end

@interface MLModelStructureProgram : NSObject RLX_KEEPS(MLModelStructureProgram) // mlmodelstructureprogram
- (NSDictionary *)functions; // by name
@end

@interface MLModelStructure : NSObject RLX_KEEPS(MLModelStructure) // mlmodelstructure
- (MLModelStructureProgram *)program;
@end

@interface MLComputePlanDeviceUsage : NSObject RLX_KEEPS(MLComputePlanDeviceUsage) // mlcomputeplandeviceusage
- (id<MLComputeDeviceProtocol>)preferredComputeDevice;
- (NSArray *)supportedComputeDevices;
@end

@interface MLComputePlanCost : NSObject RLX_KEEPS(MLComputePlanCost) // mlcomputeplancost
- (double)weight;
@end

@interface MLComputePlan : NSObject RLX_KEEPS(MLComputePlan) // mlcomputeplan
+ (void)loadContentsOfURL:(NSURL *)url
            configuration:(MLModelConfiguration *)configuration
        completionHandler:(void (^)(MLComputePlan *plan, NSError *error))handler;
- (MLModelStructure *)modelStructure;
- (MLComputePlanDeviceUsage *)computeDeviceUsageForMLProgramOperation:(MLModelStructureProgramOperation *)operation;
- (MLComputePlanCost *)estimatedCostOfMLProgramOperation:(MLModelStructureProgramOperation *)operation;
@end
