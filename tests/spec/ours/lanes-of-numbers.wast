;; Loads of numbers that end in lanes of vectors which nobody needs. Found by `make fuzz`, seed 2193: instruction selection knew that the upper
;; lanes are zero whatever was loaded, and left the load out.

(module
  (import "spectest" "print" (func $nothing))
  (memory 1)
  (func (export "float, compared and splat") (param i32) (result i32) (local f32)
    (local.set 1 (f32.floor (f32.load (local.get 0))))
    (call $nothing)
    (i16x8.extract_lane_s 4
      (f64x2.abs (f32x4.convert_i32x4_s (i16x8.extend_high_i8x16_s (i32x4.trunc_sat_f64x2_s_zero
        (f32x4.splat (select (local.get 1) (f32.const nan) (f32.eq (local.get 1) (local.get 1))))))))))
  (func (export "double, chosen and splat") (param i32) (result i32) (local f64)
    (local.set 1 (f64.load (local.get 0)))
    (i32x4.extract_lane 3
      (f32x4.demote_f64x2_zero (f64x2.splat (select (local.get 1) (f64.const 1) (f64.gt (local.get 1) (f64.const 0)))))))
  (func (export "integer, masked and splat") (param i32) (result i64)
    (i64x2.extract_lane 1
      (i32x4.trunc_sat_f64x2_u_zero (f64x2.convert_low_i32x4_u (i32x4.splat (i32.and (i32.load (local.get 0)) (i32.const 0xff00)))))))
  (func (export "integer, shifted and put into a lane") (param i32) (result i32)
    (i8x16.extract_lane_u 15
      (i8x16.narrow_i16x8_u (v128.const i64x2 0 0)
        (i16x8.replace_lane 0 (v128.const i64x2 0 0) (i32.shr_u (i32.load16_u (local.get 0)) (i32.const 3))))))
  (func (export "converted") (param i32) (result f32)
    (f32x4.extract_lane 2
      (f32x4.demote_f64x2_zero (f64x2.replace_lane 0 (v128.const f64x2 2 3) (f64.promote_f32 (f32.mul (f32.load (local.get 0)) (f32.const 3))))))))

(assert_return (invoke "float, compared and splat" (i32.const 65532)) (i32.const 0))
(assert_trap (invoke "float, compared and splat" (i32.const 65533)) "out of bounds memory access")
(assert_return (invoke "double, chosen and splat" (i32.const 65528)) (i32.const 0))
(assert_trap (invoke "double, chosen and splat" (i32.const 65529)) "out of bounds memory access")
(assert_return (invoke "integer, masked and splat" (i32.const 65532)) (i64.const 0))
(assert_trap (invoke "integer, masked and splat" (i32.const 65536)) "out of bounds memory access")
(assert_return (invoke "integer, shifted and put into a lane" (i32.const 65534)) (i32.const 0))
(assert_trap (invoke "integer, shifted and put into a lane" (i32.const 65535)) "out of bounds memory access")
(assert_return (invoke "converted" (i32.const 65532)) (f32.const 0))
(assert_trap (invoke "converted" (i32.const -4)) "out of bounds memory access")
