// The part of Foundation that the bindings use, declared anew from Apple's
// documentation: the page of each declaration is its name under
// https://developer.apple.com/documentation/foundation (or objectivec).
#include <stddef.h>
#include <stdint.h>

#define nil ((id)0)
#define YES ((BOOL)1)
#define NO ((BOOL)0)

#ifdef __x86_64__
typedef signed char BOOL; // a bool on Apple's own processors alone
#else
typedef _Bool BOOL;
#endif
typedef unsigned long NSUInteger;
typedef long NSInteger;

@class NSArray, NSString, NSURL;

@protocol NSObject
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
- (BOOL)respondsToSelector:(SEL)selector;
- (BOOL)isKindOfClass:(Class)class;
@end

__attribute__((objc_root_class)) @interface NSObject <NSObject>
+ (instancetype)alloc;
- (instancetype)init;
+ (BOOL)instancesRespondToSelector:(SEL)selector;
@end

Class NSClassFromString(NSString *name);

@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char *)text;
- (instancetype)initWithUTF8String:(const char *)text;
- (const char *)UTF8String;
@end

@interface NSError : NSObject
- (NSInteger)code;
- (NSString *)localizedDescription;
@end

__attribute__((objc_exception)) @interface NSException : NSObject
- (NSString *)reason;
@end

@interface NSNumber : NSObject
+ (NSNumber *)numberWithLongLong:(long long)value;
- (long long)longLongValue;
@end

@interface NSArray : NSObject
+ (instancetype)array;
+ (instancetype)arrayWithObject:(id)object;
- (NSUInteger)count;
- (id)objectAtIndex:(NSUInteger)index;
@end

@interface NSMutableArray : NSArray
- (void)insertObject:(id)object atIndex:(NSUInteger)index;
@end

@interface NSDictionary : NSObject
+ (instancetype)dictionary;
- (id)objectForKey:(id)key;
@end

@interface NSMutableDictionary : NSDictionary
- (void)setObject:(id)object forKey:(id)key;
@end

@interface NSURL : NSObject
+ (NSURL *)fileURLWithPath:(NSString *)path;
- (NSString *)path;
@end

@interface NSProcessInfo : NSObject
+ (NSProcessInfo *)processInfo;
- (NSString *)operatingSystemVersionString;
@end

@protocol NSLocking
- (void)lock;
- (void)unlock;
@end

@interface NSConditionLock : NSObject <NSLocking>
- (instancetype)initWithCondition:(NSInteger)condition;
- (void)lockWhenCondition:(NSInteger)condition;
- (void)unlockWithCondition:(NSInteger)condition;
@end
