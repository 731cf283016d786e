/*
 * SPDX-License-Identifier: Apache-2.0
 * java -Xmx64m Heap.java SECONDS: a heap of which nearly all is in use, so that its collector has to look at all of it
 * again and again for the little that it frees.
 */
class Heap {
	static final int LIVE = 50, KIB = 1024;
	static long sum;

	public static void main(String[] args) {
		long end = System.nanoTime() + (long)(Double.parseDouble(args[0]) * 1e9);
		byte[][] live = new byte[LIVE * KIB][];

		for (int i = 0; System.nanoTime() < end; i = (i + 7919) % live.length) {
			live[i] = new byte[KIB - 16];
			sum += live[i].length;
		}
		System.out.println(sum);
	}
}
